#include "tests/statistics/calibration.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/scoring/stats_paired.h"
#include "common/philox.h"
#include "common/rng.h"
#include "reports/gate.h"

namespace iha::statistics {
namespace {

// Uniform numbers of 32 bits, four a block: a study draws some 10^10.
class Uniforms {
 public:
  explicit Uniforms(uint64_t key) : key_(key) {}
  // A few draws share their noise when they share their seed: over many pairs it must average out.
  uint64_t NextKey() { return Bits64At(~key_, index_++); }
  double Next() {
    if (left_ == 0) {
      block_ = Philox4x32(key_, index_++);
      left_ = 4;
    }
    return block_.word[--left_] * 0x1.0p-32;
  }

 private:
  uint64_t key_;
  uint64_t index_ = 0;
  PhiloxBlock block_{};
  int left_ = 0;
};

// Beta(a, b) of whole numbers: the a-th smallest of a + b - 1 uniforms.
double Beta(Uniforms& random, size_t a, size_t b) {
  double values[8];
  const size_t n = a + b - 1;
  for (size_t i = 0; i < n; ++i) values[i] = random.Next();
  std::nth_element(values, values + a - 1, values + n);
  return values[a - 1];
}

double MixtureRate(Uniforms& random) {
  const double u = random.Next();
  if (u < 0.4) return Beta(random, 1, 6);
  return u < 0.7 ? Beta(random, 2, 2) : Beta(random, 6, 1);
}

double MeanRate(const Setting& setting) {
  if (setting.rates.empty()) return MixtureMean();
  double sum = 0.0;
  for (const double rate : setting.rates) sum += rate;
  return sum / static_cast<double>(setting.rates.size());
}

// One pair of runs: the baseline first, since its samples fix the margin that says how much the candidate has lost.
class Pair {
 public:
  Pair(const Setting& setting, Uniforms& random) : setting_(setting), random_(random) {
    const auto n = static_cast<size_t>(setting.items);
    for (size_t i = 0; i < n; ++i) {
      const double rate =
          setting.rates.empty()
              ? MixtureRate(random)
              : setting.rates[static_cast<size_t>(random.Next() * static_cast<double>(setting.rates.size()))];
      rates_.push_back(rate);
      int right = 0;
      for (int s = 0; s < setting.samples; ++s) {
        uniforms_.push_back(static_cast<float>(random.Next()));
        right += uniforms_.back() < rate ? 1 : 0;
      }
      right_.push_back(right);
    }
  }

  reports::Margin FixedMargin() const {
    reports::GateEntry entry;
    entry.planned = setting_.items;
    entry.sampling.samples = setting_.samples;
    reports::GateMetric metric;
    const double k = setting_.samples;
    if (setting_.samples > 1) {
      double within = 0.0;
      for (const int right : right_) within += right * (k - right) / (k * (k - 1.0));
      metric.within_variance = within / setting_.items;
    }
    return reports::AutoMargin(entry, metric, {.alpha = setting_.alpha});
  }

  // Every rate times 1 - lost.
  std::vector<double> Differences(double lost) {
    std::vector<double> d;
    for (size_t i = 0; i < rates_.size(); ++i) {
      int right = 0;
      for (int s = 0; s < setting_.samples; ++s) {
        const size_t at = i * static_cast<size_t>(setting_.samples) + static_cast<size_t>(s);
        const double u = Shares() ? uniforms_[at] : random_.Next();
        right += u < rates_[i] * (1.0 - lost) ? 1 : 0;
      }
      d.push_back(static_cast<double>(right - right_[i]) / setting_.samples);
    }
    return d;
  }

 private:
  // Whether the next sample draws what the baseline's did. Draws nothing where that is sure.
  bool Shares() {
    if (setting_.shared <= 0.0 || setting_.shared >= 1.0) return setting_.shared >= 1.0;
    return random_.Next() < setting_.shared;
  }

  const Setting& setting_;
  Uniforms& random_;
  std::vector<double> rates_;
  std::vector<float> uniforms_;
  std::vector<int> right_;
};

struct Tested {
  scoring::PairedResult test;
  double margin = 0.0;
};

Tested TestOnePair(const Setting& setting, double loss, Uniforms& random) {
  Pair pair(setting, random);
  Tested tested;
  tested.margin = pair.FixedMargin().value;
  const double lost = std::min(1.0, loss * tested.margin / MeanRate(setting));
  tested.test = scoring::CompareDifferences(pair.Differences(lost), {.alpha = setting.alpha,
                                                                     .single_sample = setting.samples == 1,
                                                                     .seed = random.NextKey(),
                                                                     .draws = setting.draws});
  return tested;
}

}  // namespace

double MixtureMean() { return 0.4 / 7.0 + 0.3 * 0.5 + 0.3 * 6.0 / 7.0; }

Rates Simulate(const Setting& setting) {
  Uniforms random(setting.seed);
  Rates rates;
  rates.pairs = setting.pairs;
  const double one = 1.0 / setting.pairs;
  for (int pair = 0; pair < setting.pairs; ++pair) {
    const Tested tested = TestOnePair(setting, setting.loss, random);
    rates.mean_margin += one * tested.margin;
    switch (reports::VerdictOf(tested.test, tested.margin, tested.test.p_worse, setting.alpha)) {
      case reports::Verdict::kPass:
        rates.pass += one;
        break;
      case reports::Verdict::kFail:
        rates.fail += one;
        break;
      case reports::Verdict::kInconclusive:
        rates.inconclusive += one;
        break;
    }
  }
  return rates;
}

FamilyRates SimulateFamilies(const Setting& setting, int metrics) {
  Uniforms random(setting.seed);
  FamilyRates rates;
  for (int family = 0; family < setting.pairs; ++family) {
    std::vector<Tested> same;
    std::vector<double> p;
    for (int m = 0; m < metrics; ++m) {
      same.push_back(TestOnePair(setting, 0.0, random));
      p.push_back(same.back().test.p_worse);
    }
    const std::vector<double> adjusted = scoring::HolmAdjusted(p);
    bool any_fail = false, others_pass = true;
    for (size_t m = 0; m < same.size(); ++m) {
      const auto verdict = reports::VerdictOf(same[m].test, same[m].margin, adjusted[m], setting.alpha);
      any_fail = any_fail || verdict == reports::Verdict::kFail;
      others_pass = others_pass && (m == 0 || verdict == reports::Verdict::kPass);
    }
    const Tested lost = TestOnePair(setting, 1.0, random);
    rates.any_fail += any_fail ? 1.0 / setting.pairs : 0.0;
    rates.all_pass += others_pass && lost.test.lower > -lost.margin ? 1.0 / setting.pairs : 0.0;
  }
  return rates;
}

}  // namespace iha::statistics
