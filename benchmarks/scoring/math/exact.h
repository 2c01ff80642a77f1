// exact.h: comparisons that are proofs: rational functions over FLINT's multivariate polynomials.
//
// Symbols are indeterminates; whatever is no rational function of them (roots, sines, unknown functions) is one more
// indeterminate, named by its Key. Equal is always a proof; different only when all indeterminates are symbols.
// Bounded by the tree's budget (poly_terms, bignum_bits); beyond it the answer is kUnknown. Pure.
#pragma once

#include <optional>

#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

enum class Exact : uint8_t { kEqual, kDifferent, kUnknown };
Exact CompareExactly(const Tree& tree, Ref a, Ref b);

// The value of sums, products, whole powers, factorials, binomials, gcd, lcm and absolute values of whole numbers and
// fractions, up to 4 x bignum_bits; nullopt for anything else. `work` is what is left of the budget's ball_work;
// reduced.
std::optional<Rational> ExactValue(const Tree& tree, Ref ref, int64_t& work);

// Whether the equations a = 0 and b = 0 are the same up to a constant factor: the reduced numerators are proportional.
enum class Proportion : uint8_t { kPositive, kNegative, kNone, kUnknown };
Proportion ProportionOf(const Tree& tree, Ref a, Ref b);

}  // namespace iha::scoring::math
