// Thinking and stops are cut as lm-evaluation-harness cuts them.
#include "benchmarks/scoring/stops.h"

#include <gtest/gtest.h>

#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

TEST(Stops, OneAfterTheOtherInListOrder) {
  EXPECT_EQ(CutAtStops("xabcx", {"bc", "ab"}), "xa");
  EXPECT_EQ(CutAtStops("xabcx", {"ab", "bc"}), "x");
  EXPECT_EQ(CutAtStops(" a ", {"", "b"}), " a ");
}

TEST(Stops, ThinkingEndsBehindItsLastMark) {
  EXPECT_EQ(WithoutThinking("<think>5</think>\n\n 7"), "7");
  EXPECT_EQ(WithoutThinking("</think>a</think>b"), "b");
  EXPECT_EQ(WithoutThinking("<think>cut off"), "<think>cut off");
  EXPECT_EQ(WithoutThinking("a</think> "), "");
}

TEST(Stops, LabelledRows) {
  IHA_REQUIRE_CASES(cases);
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_stops.jsonl.gz");
  ASSERT_EQ(rows.size(), 159u);
  for (const auto& row : rows) {
    const std::string text = row["text"];
    const bool thinks = row.value("think_end_token", "") == "</think>";
    EXPECT_EQ(CutAtStops(thinks ? WithoutThinking(text) : text, row["stop"].get<std::vector<std::string>>()),
              row["out"])
        << row.dump();
  }
}

}  // namespace
}  // namespace iha::scoring
