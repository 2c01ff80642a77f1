// A small part of the gate's calibration study (`./dev calibrate` runs the whole; docs/gate-calibration.md has its
// figures).
#include "tests/statistics/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/rng.h"

namespace iha::statistics {
namespace {

constexpr int kPairs = 500;
// alpha and two standard errors of a share over 500 pairs.
const double kLimit = 0.05 + 2 * std::sqrt(0.05 * 0.95 / kPairs);

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return "K" + std::to_string(info.param.samples) + "Items" + std::to_string(info.param.items);
}

class Calibration : public ::testing::TestWithParam<Setting> {};

TEST_P(Calibration, WrongVerdictsAreAsRareAsPromised) {
  Setting setting = GetParam();
  const Rates same = Simulate(setting);
  setting.loss = 1.0;
  const Rates lost = Simulate(setting);
  setting.loss = 4.0;
  const Rates ruined = Simulate(setting);
  RecordProperty("false_alarm", std::to_string(same.fail));
  RecordProperty("false_pass", std::to_string(lost.pass));
  RecordProperty("unchanged_passes", std::to_string(same.pass));
  RecordProperty("four_margins_fail", std::to_string(ruined.fail));
  EXPECT_LE(same.fail, kLimit);
  EXPECT_LE(lost.pass, kLimit);
  EXPECT_GE(ruined.fail, 0.9);  // a gate that never fails anything would keep both promises
}

INSTANTIATE_TEST_SUITE_P(Settings, Calibration,
                         ::testing::Values(Setting{.items = 164, .samples = 1, .shared = 0.5, .rates = {}},
                                           Setting{.items = 1319, .samples = 1, .shared = 0.9, .rates = {}},
                                           Setting{.items = 164, .samples = 5, .shared = 0.0, .rates = {}},
                                           Setting{.items = 500, .samples = 16, .shared = 0.5, .rates = {}}),
                         NameOf);

TEST(Calibration, FamiliesKeepTheErrorRate) {
  const FamilyRates rates =
      SimulateFamilies({.items = 500, .samples = 1, .shared = 0.5, .rates = {}, .pairs = kPairs}, 4);
  RecordProperty("any_fail", std::to_string(rates.any_fail));
  RecordProperty("all_pass", std::to_string(rates.all_pass));
  EXPECT_LE(rates.any_fail, kLimit);
  EXPECT_LE(rates.all_pass, kLimit);
}

// Without this, item rates whose mean is another than MixtureMean() would make "lost a margin" mean something else.
TEST(Calibration, TheCandidateLosesWhatTheSettingSays) {
  const Rates rates = Simulate({.items = 1319, .samples = 5, .shared = 1.0, .loss = 1.0, .rates = {}, .pairs = 200});
  EXPECT_NEAR(MixtureMean(), 0.464286, 1e-6);
  EXPECT_GT(rates.mean_margin, 0.0);
  EXPECT_EQ(rates.pairs, 200);
  EXPECT_NEAR(rates.pass + rates.fail + rates.inconclusive, 1.0, 1e-9);
}

}  // namespace
}  // namespace iha::statistics
