// stats_math.h: logarithm and normal quantile from +, -, *, / and sqrt alone, so that an interval has the same bits on
// every machine (library versions of these functions differ in the last bit between CPUs). Pure. Absolute error below
// 1e-12, which is far below what an interval needs; below x = -3 that of NormalCdf is relative to its value: p-values.
#pragma once

namespace iha::scoring {

double NaturalLog(double x);      // x > 0, normal
double NormalCdf(double x);       // |x| <= 8
double NormalQuantile(double p);  // p in [1e-14, 1 - 1e-14]

}  // namespace iha::scoring
