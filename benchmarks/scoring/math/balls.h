// balls.h: comparison by rigorous ball arithmetic (Arb) at seeded random points of rising precision.
//
// Disjoint balls prove "different"; agreement to 60 digits behind the point at enough points counts as "equal"; what is
// undefined at too many points, or costs more than the budget (points, precision, ball_work), is undecided. The points
// depend on the names of the symbols only, so the order of the two sides does not matter. Pure; thread: any.
#pragma once

#include <cstdint>
#include <optional>

#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

struct BallOptions {
  bool log_is_decimal = false;  // \log without a base: 10, else e
};

enum class Ball : uint8_t { kEqual, kDifferent, kUndecided };
// `work` is what is left of the budget's ball_work; reduced.
Ball CompareBalls(const Tree& tree, Ref a, Ref b, const BallOptions& options, int64_t& work);

// Sign of a - b for real values without symbols: -1, 0 (equal to 60 digits behind the point), 1.
std::optional<int> OrderOf(const Tree& tree, Ref a, Ref b, int64_t& work);

// |a - b| <= bound for values without symbols; nullopt when it can't be decided.
std::optional<bool> Within(const Tree& tree, Ref a, Ref b, const Rational& bound, int64_t& work);

}  // namespace iha::scoring::math
