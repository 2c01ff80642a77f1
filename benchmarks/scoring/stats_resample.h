// stats_resample.h: the distribution behind a bootstrap-t bound: studentized means of seeded resamples of the values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace iha::scoring {

// Sorted ascending, one for each draw: (mean* - mean) / se* of a resample of all values with replacement. A resample
// without spread is infinite on its own side of 0, or 0 where it sits there. Each draw takes the count of the most
// common value first (a binomial) and then only the others one by one: exact multinomial counts at the cost of the
// latter. The values must not all be equal. Pure; equal data give equal bits on every machine.
std::vector<double> StudentizedResamples(std::span<const double> values, uint64_t seed, int32_t draws);

// One resample's studentized mean, from the sum and the sum of squares of its n values, centred at the data's mean.
double StudentizedMean(double sum, double sum_squares, double n, double variance_floor);

}  // namespace iha::scoring
