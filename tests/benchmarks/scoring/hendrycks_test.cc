// The MATH graders of Hendrycks et al.: the traps of the protocol, and every row that the real code labelled.
#include "benchmarks/scoring/hendrycks.h"

#include <gtest/gtest.h>

#include "benchmarks/scoring/python_int.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

TEST(Hendrycks, Traps) {
  const struct {
    const char* a;
    const char* b;
    bool equal;
  } rows[] = {
      {"1/2", "\\frac{1}{2}", true},
      {"0.5", "\\frac12", true},
      {"50\\%", "50", true},
      {"x=5", "5", true},
      {"xy=5", "5", true},
      {"xyz=5", "5", false},
      {"\xCE\xB1\xCE\xB2=5", "5", true},  // two characters of two bytes each
      {"12\\text{ cm}", "12", true},
      {"12 \\text{cm}", "12", false},
      {"1,000", "1000", false},
      {"5.0", "5", false},
      {"0.50", "1/2", false},
      {"\\text{Evelyn}", "Evelyn", false},
      {"x/y", " x/y", false},  // raises, so the texts as they are
      {"x/y", "x/y", true},
      {"\\frac", "\\frac", true},
      {"\\sqrt", " \\sqrt", false},
      {"\\frac1", "\\frac 1", true},  // one character: left alone
      {"\\tfrac{1}{2}", "\\dfrac12", true},
      {"1 \\text{ a} \\text{ b}", "1", false},  // two units raise
      {"+1/2", "1/2", false},                   // an integer, but not as written: stays
      {"\xD9\xA1/2", "\xD9\xA1/2 ", true},      // ARABIC-INDIC DIGIT ONE is an int() too
      {".5", "0.5", true},
      {"", "", true},
      {"\n", "", true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(HendrycksEquivalent(row.a, row.b), row.equal) << row.a << " | " << row.b;
    EXPECT_EQ(HendrycksEquivalent(row.b, row.a), row.equal) << row.b << " | " << row.a;
  }
}

TEST(Hendrycks, LastBoxed) {
  EXPECT_EQ(LastBoxed("a \\boxed{1} b \\boxed{\\frac{1}{2}}."), "\\boxed{\\frac{1}{2}}");
  EXPECT_EQ(LastBoxed("\\boxed 5$ and \\boxed{7}"), "\\boxed 5");  // the spaced form wins wherever it stands
  EXPECT_EQ(LastBoxed("\\fbox{3}"), "\\fbox{3}");
  EXPECT_EQ(LastBoxed("\\boxed{3"), std::nullopt);
  EXPECT_EQ(LastBoxed("none"), std::nullopt);
  EXPECT_EQ(RemoveBoxed("\\boxed{a}"), "a");
  EXPECT_EQ(RemoveBoxed("\\boxed 5"), "5");
  EXPECT_EQ(RemoveBoxed("\\fbox{3}"), std::nullopt);
}

TEST(Hendrycks, AnswerStandsBetweenTheOutermostDollars) {
  EXPECT_EQ(HendrycksAnswer("so $x$ is $5$."), "x$ is $5");
  EXPECT_EQ(HendrycksAnswer("cost: $5"), "cost: $5");
  EXPECT_EQ(HendrycksAnswer(""), "");
  EXPECT_EQ(HendrycksAnswer("$$"), "");
}

TEST(Hendrycks, PythonIntegers) {
  for (const char* text : {"5", " +5\n", "-0", "1_000", "\xD9\xA1\xD9\xA2",
                           "\xC2\xA0"
                           "7",
                           "007",
                           "\x1c"
                           "1"}) {
    EXPECT_TRUE(IsPythonInt(text)) << text;
  }
  for (const char* text : {"", " ", "+", "1__0", "_1", "1_", "5.0", "- 5", "--5", "\xC2\xB2", "1\xff"}) {
    EXPECT_FALSE(IsPythonInt(text)) << text;
  }
  EXPECT_TRUE(IsPythonInt(std::string(4300, '1')));
  EXPECT_FALSE(IsPythonInt(std::string(4301, '1')));
  EXPECT_TRUE(IsCanonicalInt("-12"));
  for (const char* text : {"-0", "05", "+5", "5 ", "1_0", ""}) EXPECT_FALSE(IsCanonicalInt(text)) << text;
}

// The strip form of `row[field]` must equal the label, a text or {"raises": ...}.
void ExpectStrip(const nlohmann::json& row, const char* text, const char* strip) {
  const std::optional<std::string> ours = HendrycksStrip(row[text].get<std::string>());
  const nlohmann::json& label = row[strip];
  EXPECT_EQ(ours.has_value(), label.is_string()) << row.dump();
  if (ours.has_value() && label.is_string()) {
    EXPECT_EQ(*ours, label.get<std::string>()) << row.dump();
  }
}

TEST(Hendrycks, EqualsTheRealCodeOnEveryLabelledPair) {
  IHA_REQUIRE_CASES(cases);
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_hendrycks.jsonl.gz");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    ExpectStrip(row, "a", "strip_a");
    ExpectStrip(row, "b", "strip_b");
    EXPECT_EQ(HendrycksEquivalent(row["a"].get<std::string>(), row["b"].get<std::string>()),
              row["is_equiv"].get<bool>())
        << row.dump();
  }
}

TEST(Hendrycks, EqualsTheRealCodeOnEveryLabelledOutput) {
  IHA_REQUIRE_CASES(cases);
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_hendrycks_outputs.jsonl.gz");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    const std::string output = row["output"].get<std::string>();
    EXPECT_EQ(HendrycksEquivalent(HendrycksAnswer(output), row["gold"].get<std::string>()), row["exact_match"] == 1)
        << row.dump();
  }
}

}  // namespace
}  // namespace iha::scoring
