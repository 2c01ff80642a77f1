#include "reports/rank_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "reports/csv.h"

namespace iha::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadTestdata(const std::string& name) {
  std::ifstream file("tests/reports/testdata/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Column(const std::string& csv, const std::string& header) {
  const auto rows = ParseCsv(csv).value();
  const auto at = std::find(rows[0].begin(), rows[0].end(), header) - rows[0].begin();
  std::vector<std::string> values;
  for (size_t r = 1; r < rows.size(); r++) values.push_back(rows[r].at(static_cast<size_t>(at)));
  return values;
}

// The ten average ranks printed in Tables 1 and 2 of arXiv 2602.21371.
TEST(RankCsv, GivesThePaperTable1) {
  const auto out = RankCsv(ReadTestdata("paper_table1.csv"), "Global Attention");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Column(*out, "Avg. Rank"), ElementsAre("1.5", "3.8", "4.3", "2.5", "2.8"));
  EXPECT_THAT(Column(*out, "GSM8K P@1 delta"), ElementsAre("+4.8", "", "-3.0", "-0.2", "+2.1"));
  EXPECT_THAT(Column(*out, "MBPP P@10 delta"), ElementsAre("+0.4", "", "+0.7", "+1.9", "-2.0"));
}

TEST(RankCsv, GivesThePaperTable2WithMissingCellsAndTies) {
  const auto out = RankCsv(ReadTestdata("paper_table2.csv"), "Global Attention");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Column(*out, "Avg. Rank"), ElementsAre("1.4", "2.9", "2.9", "4.0", "3.5"));
  EXPECT_THAT(Column(*out, "GSM8K Maj@5 delta"), ElementsAre("+2.81", "", "+1.29", "-0.23", "+0.00"));
  EXPECT_THAT(Column(*out, "MATH-500 EM delta"), ElementsAre("+0.66", "", "-0.62", "", ""));
}

TEST(RankCsv, KeepsTheGivenTextAndUsesTheColumnsMostDecimals) {
  const auto out = RankCsv("m,\"a,b\"\n\"x \"\"1\"\"\",1.5\nbase,1.25\nthird,2\n", "base");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out,
            "m,\"a,b\",\"a,b delta\",Avg. Rank\n"
            "\"x \"\"1\"\"\",1.5,+0.25,2.0\n"
            "base,1.25,,3.0\n"
            "third,2,+0.75,1.0\n");
}

TEST(RankCsv, RoundsHalfAwayFromZero) {
  // Ranks 1, 2.5, 2.5 and 3, 1.5, 1.5 average to 2.0; with four metrics 1,2,2,2 the mean 1.75 prints 1.8.
  const auto out = RankCsv("m,a,b,c,d\nx,9,1,1,1\ny,1,2,2,2\n", "x");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Column(*out, "Avg. Rank"), ElementsAre("1.8", "1.3"));
}

TEST(RankCsv, CarriesCrlfAndByteOrderMark) {
  const auto out = RankCsv("\xEF\xBB\xBFm,a\r\nx,1\r\ny,2\r\n", "x");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "m,a,a delta,Avg. Rank\nx,1,,2.0\ny,2,+1,1.0\n");
}

struct BadCase {
  const char* csv;
  const char* baseline;
  const char* message;
};

TEST(RankCsv, NamesWhatIsWrong) {
  const BadCase cases[] = {
      {"", "x", "expected a header line"},
      {"m,a\n", "x", "expected a header line"},
      {"m,a\nx,1\n", "y", "--baseline \"y\": no such row; the file has x"},
      {"m,a\nx,one\n", "x", "row 1 (x), column a: \"one\" is not a decimal number"},
      {"m,a\nx,nan\n", "x", "is not a decimal number"},
      {"m,a\nx,1,2\n", "x", "row 1 (x): 3 fields, expected 2"},
      {"m,a\nx,1\nx,2\n", "x", "model \"x\" appears twice"},
      {"m,a\n\"x,1\n", "x", "line 2: a quote is opened and never closed"},
      {"m,a\n\"x\"y,1\n", "x", "line 2: text after a closing quote"},
  };
  for (const BadCase& c : cases) {
    const auto out = RankCsv(c.csv, c.baseline);
    ASSERT_FALSE(out.ok()) << c.csv;
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(out.status().message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace iha::reports
