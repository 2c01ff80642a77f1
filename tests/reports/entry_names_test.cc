// Under which names entries and their metrics are shown.
#include "reports/entry_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/ruler_summary.h"

namespace iha::reports {
namespace {

using ::testing::ElementsAre;

SweepEntry Entry(const std::string& benchmark, std::vector<std::string> metrics) {
  return {.benchmark = {.name = benchmark, .options = {}},
          .sampling = {},
          .limit = std::nullopt,
          .metrics = std::move(metrics)};
}

TEST(EntryNames, ABenchmarkOrAMetricIsEnoughWhereNothingElseIsCalledSo) {
  SweepEntry greedy = Entry("gsm8k", {"gsm8k.robust"}), sampled = Entry("gsm8k", {"maj@16?metric=gsm8k.robust"});
  sampled.sampling = {.temperature = 0.6, .samples = 16};
  const auto named =
      Named({greedy, sampled, Entry("gsm8k_demo", {"gsm8k.robust"}), Entry("ruler:vt@4096", {kRulerMetric})});
  EXPECT_THAT(MetricNames(named), ElementsAre(ElementsAre("gsm8k.robust"), ElementsAre("gsm8k.robust maj@16"),
                                              ElementsAre("gsm8k_demo gsm8k.robust"), ElementsAre("ruler:vt@4096")));
  EXPECT_THAT(EntryNames(named), ElementsAre("gsm8k T=0 k=1", "gsm8k T=0.6 k=16", "gsm8k_demo", "ruler:vt@4096"));
}

TEST(EntryNames, EverySettingTellsEntriesApart) {
  const auto names = [](const SweepEntry& first, const SweepEntry& second) {
    const auto metrics = MetricNames(Named({first, second}));
    const auto entries = EntryNames(Named({first, second}));
    return std::vector<std::string>{metrics[0][0], metrics[1][0], entries[1]};
  };
  const SweepEntry plain = Entry("b", {"b.m"});
  SweepEntry other = plain;
  other.sampling.max_new_tokens = 7;
  EXPECT_THAT(names(plain, other), ElementsAre("b.m max_new_tokens=256", "b.m max_new_tokens=7", "b max_new_tokens=7"));
  other = plain;
  other.sampling.temperature = 0.5;
  EXPECT_THAT(names(plain, other), ElementsAre("b.m T=0 k=1", "b.m T=0.5 k=1", "b T=0.5 k=1"));
  other = plain;
  other.sampling.top_p = 0.9;
  other.sampling.top_k = 3;
  other.sampling.seed = 5;
  EXPECT_EQ(names(plain, other)[1], "b.m seed=5 top_k=3 top_p=0.9");
  other = plain;
  other.limit = 8;
  EXPECT_THAT(names(plain, other), ElementsAre("b.m limit=none", "b.m limit=8", "b limit=8"));
  other = plain;
  other.benchmark.options["prompt"] = "chat";
  EXPECT_THAT(names(plain, other), ElementsAre("b.m prompt=none", "b.m prompt=chat", "b prompt=chat"));
  other = plain;
  other.stop_settled_votes = true;
  EXPECT_EQ(names(plain, other)[1], "b.m stop_settled_votes=yes");
  EXPECT_THAT(names(plain, plain), ElementsAre("b.m", "b.m #2", "b #2"));
}

// What is put behind a name must not make it another's.
TEST(EntryNames, NoTwoAreAlike) {
  const SweepEntry plain = Entry("b", {"b.m"}), looks_numbered = Entry("b.m", {"#2"});
  EXPECT_THAT(MetricNames(Named({plain, looks_numbered, plain})),
              ElementsAre(ElementsAre("b.m"), ElementsAre("b.m #2"), ElementsAre("b.m #3")));
}

}  // namespace
}  // namespace iha::reports
