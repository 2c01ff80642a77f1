// calibration.h: how often the gate's verdicts are wrong, by simulation of whole pairs of runs.
//
// A setting draws item rates, k samples an item for the baseline and for a candidate that has lost a known share, fixes
// the margin from the baseline's samples as `export --baseline` does, and asks the gate's own test and rule. The true
// Delta is a multiple of that pair's margin, so that "lost exactly the margin" is what each pair is about. Seeded;
// pure.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

namespace iha::statistics {

struct Setting {
  int items = 164;
  int samples = 1;            // k
  double shared = 0.0;        // share of samples that draw the same random number in both runs: 0 independent, 1 all
  double loss = 0.0;          // true Delta = -loss * margin
  std::vector<double> rates;  // item rates are drawn from these; empty: the mixture of betas below
  int pairs = 500;
  int draws = 399;  // of the bootstrap
  double alpha = 0.05;
  uint64_t seed = 1;
};

// For test names and failures.
inline void PrintTo(const Setting& setting, std::ostream* out) {
  *out << "k " << setting.samples << ", " << setting.items << " items, shared " << setting.shared;
}

struct Rates {
  double pass = 0.0;
  double fail = 0.0;
  double inconclusive = 0.0;
  double mean_margin = 0.0;
  int pairs = 0;
};
Rates Simulate(const Setting& setting);

// Share of families of `metrics` independent metrics with a FAIL among them when none got worse (Holm), and with PASS
// over all when one has lost its margin.
struct FamilyRates {
  double any_fail = 0.0;
  double all_pass = 0.0;
};
FamilyRates SimulateFamilies(const Setting& setting, int metrics);

// One item's rate: 40 % Beta(1, 6) (hard), 30 % Beta(2, 2), 30 % Beta(6, 1) (easy); mean 0.464286.
double MixtureMean();

}  // namespace iha::statistics
