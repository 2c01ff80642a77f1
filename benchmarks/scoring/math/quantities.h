// quantities.h: values in one or several units of the same kind: "2 hours 30 minutes", "150 min", "5' 6\"", "\$0.75"
// (docs/grading.md, rule `quantity`). Pure; looks at short texts only.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "benchmarks/scoring/rational.h"

namespace iha::scoring::math {

struct Quantity {
  int dimension = 0;            // which units it is measured in
  Rational total;               // in the dimension's smallest unit
  std::vector<Rational> units;  // of its parts, each as a multiple of the smallest
  bool compound() const { return units.size() > 1; }
};

// nullopt for anything but numbers each followed by a known unit, all of one dimension, no unit twice.
std::optional<Quantity> ParseQuantity(std::string_view answer);

}  // namespace iha::scoring::math
