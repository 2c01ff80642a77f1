#include "benchmarks/exemplar_leak.h"

#include <gtest/gtest.h>

#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

std::vector<ExemplarLeak> LeaksOf(const std::string& spec, const std::string& data, int64_t items) {
  const auto ref = ParseBenchmarkRef(spec);
  EXPECT_TRUE(ref.ok()) << ref.status();
  const auto benchmark = OpenBenchmark(*ref, data);
  EXPECT_TRUE(benchmark.ok()) << benchmark.status();
  if (!benchmark.ok()) return {};
  const auto leaks = FindExemplarLeaks(**benchmark, data, items);
  EXPECT_TRUE(leaks.ok()) << leaks.status();
  return leaks.value_or(std::vector<ExemplarLeak>{});
}

TEST(ExemplarLeak, ExemplarsOfAnotherPoolLeakNothing) {
  IHA_REQUIRE_DATA(data);
  EXPECT_TRUE(LeaksOf("gsm8k", data, 200).empty());
  EXPECT_TRUE(LeaksOf("gsm8k?prompt=chat", data, 50).empty());
  EXPECT_TRUE(LeaksOf("math500", data, 100).empty());
  EXPECT_TRUE(LeaksOf("math500_hendrycks", data, 100).empty());  // 0-shot
}

// hendrycks_math500 takes its exemplars from the test set itself.
TEST(ExemplarLeak, TestItemsThatAreExemplarsAreNamed) {
  IHA_REQUIRE_DATA(data);
  const auto leaks = LeaksOf("math500_hendrycks?fewshot=4", data, 100);
  ASSERT_GE(leaks.size(), 4U);
  EXPECT_EQ(leaks[0].item, 0);
  EXPECT_GE(leaks[0].prompts, 95);
  const auto chat = LeaksOf("math500_hendrycks?fewshot=4&prompt=chat", data, 100);
  ASSERT_GE(chat.size(), 4U);
  EXPECT_EQ(chat[0].item_id, leaks[0].item_id);
}

}  // namespace
}  // namespace iha::benchmarks
