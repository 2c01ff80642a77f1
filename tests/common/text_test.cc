#include "common/text.h"

#include "common/nearest.h"
#include "gtest/gtest.h"

namespace iha {
namespace {

TEST(TerminalSafe, EscapesWhatSteersTheTerminal) {
  EXPECT_EQ(TerminalSafe("plain \xC3\xA9 \xE2\x88\x9A \xF0\x9F\x98\x80 \\frac"),
            "plain \xC3\xA9 \xE2\x88\x9A \xF0\x9F\x98\x80 \\frac");
  EXPECT_EQ(TerminalSafe("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(TerminalSafe("\x1b[31mred\x07\x7f"), "\\x1B[31mred\\x07\\x7F");
  EXPECT_EQ(TerminalSafe(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(TerminalSafe("\xC2\x9B"
                         "31m"),
            "\\u{9B}31m");                                                         // C1 control sequence introducer
  EXPECT_EQ(TerminalSafe("\xE2\x80\xAE"), "\\u{202E}");                            // right-to-left override
  EXPECT_EQ(TerminalSafe("\xFF\xC3(\xED\xA0\x80"), "\\xFF\\xC3(\\xED\\xA0\\x80");  // invalid bytes, a surrogate
}

TEST(TerminalSafe, CutsAtWholeCharacters) {
  EXPECT_EQ(TerminalSafe("abcdef", 6), "abcdef");
  EXPECT_EQ(TerminalSafe("abcdef", 5), "abcde...");
  EXPECT_EQ(TerminalSafe("ab\xC3\xA9", 3), "ab...");
  EXPECT_EQ(TerminalSafe("ab\xC3\xA9", 4), "ab\xC3\xA9");
}

TEST(Utf8, AcceptsExactlyTheWellFormed) {
  char32_t c = 0;
  EXPECT_EQ(Utf8Length("\xF4\x8F\xBF\xBF", &c), 4u);
  EXPECT_EQ(c, char32_t{0x10FFFF});
  EXPECT_EQ(Utf8Length("\xE0\xA0\x80", &c), 3u);
  EXPECT_EQ(c, char32_t{0x800});
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xED\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xC3"}) {
    EXPECT_EQ(Utf8Length(bad, nullptr), 0u) << TerminalSafe(bad);
    EXPECT_FALSE(IsValidUtf8(bad));
  }
  EXPECT_TRUE(IsValidUtf8(""));
}

TEST(Nearest, Distances) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("gsm8k", "gms8k"), 1);
  EXPECT_EQ(EditDistance("ca", "abc"), 3);  // optimal string alignment, not the unrestricted form (2)
}

TEST(Nearest, SuggestsOnlyTypos) {
  const std::vector<std::string> known = {"gsm8k", "gsm8k_cot", "math500", "mbpp"};
  EXPECT_EQ(NearestName("gsmk8", known), "gsm8k");
  EXPECT_EQ(NearestName("maths500", known), "math500");
  EXPECT_EQ(NearestName("mbp", known), "mbpp");
  EXPECT_EQ(NearestName("arc", known), std::nullopt);
  EXPECT_EQ(NearestName(std::string(100000, 'm'), known), std::nullopt);
  EXPECT_EQ(UnknownName("benchmark", "mbqp", known).message(), "unknown benchmark \"mbqp\" (did you mean \"mbpp\"?)");
  EXPECT_EQ(UnknownName("benchmark", "\x1b[2J", known).message(),
            "unknown benchmark \"\\x1B[2J\", expected one of: gsm8k, gsm8k_cot, math500, mbpp");
  EXPECT_EQ(UnknownName("option", "x", {}).message(), "unknown option \"x\": it takes none");
}

}  // namespace
}  // namespace iha
