#include "reports/gate_outlook.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "benchmarks/scoring/stats_math.h"
#include "common/rng.h"
#include "reports/gate.h"

namespace iha::reports {
namespace {

using scoring::NormalQuantile;
using scoring::PairedMethod;
using scoring::PairedOptions;
using scoring::PairedResult;

constexpr int64_t kMostItems = int64_t{1} << 16;

// As many resamples as an alpha needs, and no more: 50 below the bound's rank.
PairedOptions WithFewDraws(const OutlookOptions& options) {
  PairedOptions test = options.test;
  test.draws = std::min(test.draws, static_cast<int32_t>(std::ceil(50.0 / test.alpha)) - 1);
  return test;
}

// The distance of Delta from a claim, in units of (z of its level + z of the power): the nearer of the two claims.
// PASS is tested at alpha, FAIL at alpha divided by Holm's factor.
double Gap(const PairedResult& test, const OutlookOptions& options) {
  const double z_power = NormalQuantile(options.power), alpha = options.test.alpha;
  const double pass = (test.delta + options.margin) / (NormalQuantile(1.0 - alpha) + z_power);
  const double fail = -test.delta / (NormalQuantile(1.0 - alpha / options.holm) + z_power);
  return std::max(pass, fail);
}

bool Decides(std::span<const double> sorted, int64_t items, const OutlookOptions& options, const PairedOptions& test) {
  std::vector<double> d;
  d.reserve(static_cast<size_t>(items));
  const auto seen = static_cast<int64_t>(sorted.size());
  for (int64_t i = 0; i < items; i++) d.push_back(sorted[static_cast<size_t>((2 * i + 1) * seen / (2 * items))]);
  const PairedResult result = scoring::CompareDifferences(d, test);
  const double adjusted = std::min(1.0, options.holm * result.p_worse);
  return VerdictOf(result, options.margin, adjusted, test.alpha) != Verdict::kInconclusive;
}

}  // namespace

std::optional<int64_t> MoreItemsToDecide(std::span<const double> d, const OutlookOptions& options) {
  const PairedOptions test = WithFewDraws(options);
  std::vector<double> sorted(d.begin(), d.end());
  std::sort(sorted.begin(), sorted.end());
  const auto seen = static_cast<int64_t>(d.size());
  int64_t low = seen, high = seen + 1;
  while (!Decides(sorted, high, options, test)) {
    if (high == kMostItems) return std::nullopt;
    low = high;
    high = std::min(2 * high, kMostItems);
  }
  while (high - low > 1 + low / 32) {
    const int64_t middle = low + (high - low) / 2;
    (Decides(sorted, middle, options, test) ? high : low) = middle;
  }
  const PairedResult result = scoring::CompareDifferences(d, test);
  if (result.sd > 0.0) {
    const double root = result.sd / Gap(result, options);
    high = std::max(high, static_cast<int64_t>(std::ceil(std::min(1e12, root * root))));
  }
  if (high > kMostItems) return std::nullopt;
  return high - seen;
}

std::optional<int64_t> SamplesToDecide(const PairedResult& test, double within, int32_t k,
                                       const OutlookOptions& options) {
  if (test.method == PairedMethod::kBetting || !(within > 0.0)) return std::nullopt;
  // sd^2 = what differs between the models' items + what a mean of k samples still scatters.
  const double between = std::max(0.0, test.sd * test.sd - within / k);
  const double gap = Gap(test, options);
  const double allowed = static_cast<double>(test.items) * gap * gap - between;
  if (!(allowed > within / 1e6)) return std::nullopt;
  const auto samples = static_cast<int64_t>(std::ceil(within / allowed));
  return samples > k ? std::optional<int64_t>(samples) : std::nullopt;
}

double UnchangedPasses(std::span<const double> d, const PairedResult& test, const OutlookOptions& options) {
  if (test.method != PairedMethod::kBetting) {
    return scoring::PassPower(test.sd, test.items, options.test.alpha, options.margin);
  }
  constexpr int kResamples = 400;
  const PairedOptions cheap = WithFewDraws(options);
  PhiloxStream random(options.test.seed);
  std::vector<double> flipped(d.size());
  int passed = 0;
  for (int i = 0; i < kResamples; i++) {
    for (double& value : flipped) {
      const double drawn = d[random.NextBelow(d.size())];
      value = random.NextBelow(2) == 0 ? drawn : -drawn;
    }
    passed += scoring::CompareDifferences(flipped, cheap).lower > -options.margin ? 1 : 0;
  }
  return static_cast<double>(passed) / kResamples;
}

}  // namespace iha::reports
