// sign_table.h: where a rational function of one symbol is positive, negative, zero or undefined.
//
// A proof: the numerator and the denominator, as they are written (a common factor still excludes its zeros), are
// factored over the rationals (FLINT). Zeros are written as trees where they are rational, of an irreducible quadratic
// or biquadratic, or a root of a rational. nullopt: not rational with rational coefficients in one symbol, a zero that
// is none of these, or degree, bits or nodes beyond their bounds. Bounded; pure but for the nodes it adds to the tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

struct SignPoint {
  Ref at = kNoRef;
  bool defined = false;  // the function is 0 there; else it has no value
  bool flips = false;    // its sign differs on the two sides
};

struct SignTable {
  std::string symbol;
  int sign = 0;                   // right of all points: -1, 1; 0 for the function 0
  std::vector<SignPoint> points;  // different ones, in no order
};

std::optional<SignTable> SignsOf(Tree& tree, Ref function);

}  // namespace iha::scoring::math
