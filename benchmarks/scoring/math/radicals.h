// radicals.h: exact comparison of sums and products of real roots of rationals: a^(m/n).
//
// Each side becomes a quotient of sums of c * p^e * q^f ... with c rational, p, q primes and exponents in [0, 1). Such
// products of different exponents are linearly independent over the rationals (Besicovitch 1940), so equal and
// different are both proofs. kUnknown: anything else (symbols, pi, roots of sums, even roots of negative numbers), a
// radicand with two large primes, or more terms or bits than the bounds. Odd roots of negative numbers are real. Pure.
#pragma once

#include "benchmarks/scoring/math/exact.h"
#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

Exact CompareRadicals(const Tree& tree, Ref a, Ref b);

}  // namespace iha::scoring::math
