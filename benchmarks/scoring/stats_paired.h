// stats_paired.h: two checkpoints on the same items. d_i = candidate - baseline of item i, Delta = mean of d_i.
//
// One test gives the two one-sided bounds of Delta and the p-value of "not worse", so that they never contradict:
//   kTango       grades 0 or 1, one sample an item: the score test of a difference of paired proportions (Tango,
//                "Equivalence test and confidence interval for the difference in proportions for the paired-sample
//                design", Statistics in Medicine 17, 1998), with half a count as continuity correction: without it the
//                error rate is 0.059 instead of 0.05 where some 10 items differ (docs/gate-calibration.md)
//   kBootstrapT  otherwise, with at least 30 d_i other than 0: the studentized bootstrap (Efron and Tibshirani, An
//                Introduction to the Bootstrap, 1993, section 12.5), the same correction being half of the step that a
//                sum of d moves by (1 / k for means of k grades). The standard error is widened by sqrt(m / (m - 1)),
//                m = (sum e^2)^2 / sum e^4 effective items (e = d - Delta; Satterthwaite, Biometrics Bulletin 2, 1946;
//                Kish, Survey Sampling, 1965): n - 1 is too many degrees of freedom where few items bear the spread,
//                and without it the error rate is 0.052. A resample is a multinomial draw of the counts of
//                the distinct d values, so that its cost is that of the items off the most common one
//   kBetting     otherwise: the fixed-n betting bound (stats_betting.h), whose guarantee is for any n
// Samples of an item are dependent: the item is the unit. Pure, thread-safe; equal data give equal bits on every
// machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/eval_types.h"

namespace iha::scoring {

enum class PairedMethod { kTango, kBootstrapT, kBetting };
const char* NameOf(PairedMethod method);  // "tango", "bootstrap_t", "betting"

struct PairedOptions {
  double alpha = 0.05;         // of each one-sided bound
  bool single_sample = false;  // every value is the grade of exactly one sample (k = 1): allows kTango
  uint64_t seed = 1234;        // of resampling and shuffles
  int32_t draws = 10000;       // bootstrap resamples; 1 / (draws + 1) must be below alpha
  int64_t min_nonzero = 30;    // fewer d_i other than 0: kBetting
  double continuity = 0.5;     // correction of kTango and kBootstrapT, in steps of the sum of d; 0 = none
};

struct PairedResult {
  PairedMethod method = PairedMethod::kBetting;
  double delta = 0.0;    // mean of d
  double sd = 0.0;       // of d_i, with n - 1 (0 for one item)
  double lower = -1.0;   // Delta > lower with confidence 1 - alpha
  double upper = 1.0;    // Delta < upper with confidence 1 - alpha
  double p_worse = 1.0;  // against "Delta >= 0"; below alpha where upper < 0
  int64_t items = 0;
  int64_t better = 0;  // items with d > 0
  int64_t worse = 0;   // items with d < 0
};

// `candidate` and `baseline`: one value in [0, 1] for each item, in the same order; equal sizes, at least one.
PairedResult ComparePaired(std::span<const Score> candidate, std::span<const Score> baseline,
                           const PairedOptions& options);
std::vector<double> Differences(std::span<const Score> candidate, std::span<const Score> baseline);
// The same of the differences themselves, each in [-1, 1]; kTango where all are -1, 0 or 1.
PairedResult CompareDifferences(std::span<const double> d, const PairedOptions& options);

// Tango's statistic against Delta = `delta`, |delta| < 1, of `items` pairs of which `better` have d = 1 and `worse` d =
// -1; standard normal under that hypothesis. It falls as delta grows. `correction` is added to better - worse.
double TangoStatistic(int64_t better, int64_t worse, int64_t items, double delta, double correction = 0.0);

// Two-sided exact McNemar test: binomial on the discordant items (McNemar 1947), and its mid-p (Fagerland, Lydersen and
// Laake 2013).
struct McNemar {
  double p = 1.0;
  double mid_p = 1.0;
};
McNemar McNemarTest(int64_t better, int64_t worse);

// Two-sided sign-flip permutation test of Delta = 0 (Fisher 1935): all sign patterns for at most 20 values other than
// 0, else 100,000 seeded ones (Phipson and Smyth 2010: the data count as one of them).
double SignFlipPValue(std::span<const double> d, uint64_t seed = 1234);

// Holm's step-down adjustment (Holm 1979): claims with an adjusted p at most alpha hold together with error alpha.
std::vector<double> HolmAdjusted(std::span<const double> p);
// The same for e-values, merged by their mean, under any dependence (Vovk and Wang, "E-values: calibration, combination
// and applications", Annals of Statistics 2021, Algorithm 1): claims with an adjusted e of at least 1 / alpha.
std::vector<double> EHolmAdjusted(std::span<const double> e);

// What a one-sided test at `alpha` detects with probability `power`: (z_{1-alpha} + z_power) sd / sqrt(n).
double MinimumDetectableEffect(double sd, int64_t items, double alpha, double power);
// The probability that L > -margin when Delta = 0: normal approximation at the observed sd.
double PassPower(double sd, int64_t items, double alpha, double margin);

}  // namespace iha::scoring
