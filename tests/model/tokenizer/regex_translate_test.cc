// Oniguruma's meaning of patterns, as the onig crate (tokenizers 0.23) was seen to read them.
#include "model/tokenizer/regex_translate.h"

#include "model/tokenizer/pattern.h"

namespace iha::tokenizer {
namespace {

std::vector<std::string> Matches(const std::string& regex, std::string_view text) {
  const auto pattern = Pattern::Regex(regex);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  if (!pattern.ok()) return {};
  std::vector<Span> spans;
  PatternMatcher(*pattern).FindAll(text, &spans);
  std::vector<std::string> out;
  for (const Span& span : spans) out.emplace_back(text.substr(span.begin, span.end - span.begin));
  return out;
}
using List = std::vector<std::string>;

struct Case {
  const char* regex;
  const char* text;
  List matches;
};

TEST(RegexTranslate, Sets) {
  const Case cases[] = {
      // U+0085 and U+3000 are white space, U+180E (PCRE2's own \s) and U+001C (Python's) are not.
      {"\\s", "\xC2\x85|\xE3\x80\x80|\xE1\xA0\x8E|\x1C", {"\xC2\x85", "\xE3\x80\x80"}},
      {"\\S+", "a\xC2\xA0\xE1\xA0\x8E", {"a", "\xE1\xA0\x8E"}},
      // Marks and Latin-1's fractions are word characters, but the fractions are not so inside brackets.
      {"\\w+", "e\xCC\x81\xC2\xBD|\xE2\x85\x93", {"e\xCC\x81\xC2\xBD"}},
      {"[\\w]+", "e\xCC\x81\xC2\xBD", {"e\xCC\x81"}},
      {"[\\W]", "a\xC2\xBD", {"\xC2\xBD"}},
      {"\\d+", "1\xD9\xA3\xC2\xBD", {"1\xD9\xA3"}},
      {"\\h+", "xAf9g", {"Af9"}},
      {"(?i:'s)", "'s'S'\xC5\xBF", {"'s", "'S", "'\xC5\xBF"}},
      // \p{Han} is the script; U+3001 has Han among its script extensions only. Unicode 15 letters count.
      {"\\p{Han}+", "\xE6\xBC\xA2\xE3\x80\x81\xF0\xB1\x8D\x90", {"\xE6\xBC\xA2", "\xF0\xB1\x8D\x90"}},
      {"\\p{Letter}", "1a", {"a"}},
      {"\\p{^L}", "1a", {"1"}},
      {"\\P{L}", "1a", {"1"}},
      {"[[:punct:]]+", "a+,$b", {"+,$"}},
      {"[^[:alpha:]]+", "a+1", {"+1"}},
  };
  for (const Case& c : cases) EXPECT_EQ(Matches(c.regex, c.text), c.matches) << c.regex;
}

TEST(RegexTranslate, Brackets) {
  const Case cases[] = {
      {"[a-z&&[^aeiou]]+", "abcde", {"bcd"}},
      {"[\\W\\d]+", "a1 b", {"1 "}},
      {"[^\\S\\n]+", " \t\n ", {" \t", " "}},
      {"[^a\\W]+", "ab c", {"b", "c"}},
      {"[]a]+", "]a[", {"]a"}},
      {"[a-]+", "a-b", {"a-"}},
      {"[\\]\\\\^]+", "]\\^", {"]\\^"}},
      {"[a[b[^c-z]]]+", "abC-d", {"abC-"}},
      {"[\\x{4E00}-\\u9FFF]", "\xE4\xB8\x96", {"\xE4\xB8\x96"}},
  };
  for (const Case& c : cases) EXPECT_EQ(Matches(c.regex, c.text), c.matches) << c.regex;
}

TEST(RegexTranslate, Repeats) {
  const Case cases[] = {
      {"a{2}?", "aaa", {"aa", ""}},           // n times or not at all
      {"a{1,2}+b", "aaab", {"aaab"}},         // not possessive: repeated
      {"a{,2}b", "aaab", {"aab"}},            // from 0
      {"a{b", "a{b", {"a{b"}},                // a literal brace
      {"a++b|a+", "aaab", {"aaab"}},          // possessive
      {"a(?i)b|c", "aB aC C", {"aB", "aC"}},  // (?i) binds the alternatives after it
      {"(?m).+", "a\nb", {"a\nb"}},           // dot takes newlines
      {".+", "a\nb", {"a", "b"}},
      {"^.", "ab\ncd", {"a", "c"}},    // at every line
      {"a*", "baac", {"", "aa", ""}},  // no empty match right after a match
      {"\\b", "a b", {"", "", "", ""}},
      {"(a|b)\\1", "abba", {"bb"}},
      {"(?<n>x)\\k<n>", "xxx", {"xx"}},
  };
  for (const Case& c : cases) EXPECT_EQ(Matches(c.regex, c.text), c.matches) << c.regex;
}

// A match as long as the text must neither fail nor overflow a stack.
TEST(RegexTranslate, LongRuns) {
  const std::string spaces(3'000'000, ' ');
  EXPECT_EQ(Matches("\\s+(?!\\S)|\\s+", spaces + "x"), (List{std::string(2'999'999, ' '), " "}));
  std::string letters(1'000'000, 'a');
  letters.push_back('c');
  EXPECT_EQ(Matches("(?:a|b)+c", letters).size(), 1u);
}

TEST(RegexTranslate, Refusals) {
  for (const char* regex :
       {"(",      ")",    "[",      "[z-a]", "a**b(", "\\",  "\\p", "\\p{", "\\x{110000}", "\\xFF",
        "(?{x})", "(*F)", "(?x) a", "(?~a)", "\\y",   "\\K", "+",   "(?<n", "\\k<",        "\\u12"}) {
    EXPECT_FALSE(Pattern::Regex(regex).ok()) << regex;
  }
}

}  // namespace
}  // namespace iha::tokenizer
