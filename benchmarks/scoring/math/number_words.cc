#include "benchmarks/scoring/math/number_words.h"

#include <array>
#include <string>
#include <unordered_map>

#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLongestCount = 100;  // bytes
constexpr size_t kWindow = 2000;       // bytes at the end of a text that are searched

struct Scale {
  string_view name;
  int64_t value;
};
constexpr std::array<Scale, 4> kScales = {
    {{"trillion", 1'000'000'000'000}, {"billion", 1'000'000'000}, {"million", 1'000'000}, {"thousand", 1000}}};
constexpr std::array<Scale, 7> kGroups = {{{"dozen", 12},
                                           {"score", 20},
                                           {"gross", 144},
                                           {"hundred", 100},
                                           {"thousand", 1000},
                                           {"million", 1'000'000},
                                           {"billion", 1'000'000'000}}};

const std::unordered_map<string_view, int64_t>& Small() {
  static const auto* const kSmall = new std::unordered_map<string_view, int64_t>{
      {"zero", 0},      {"one", 1},       {"two", 2},       {"three", 3},    {"four", 4},     {"five", 5},
      {"six", 6},       {"seven", 7},     {"eight", 8},     {"nine", 9},     {"ten", 10},     {"eleven", 11},
      {"twelve", 12},   {"thirteen", 13}, {"fourteen", 14}, {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17},
      {"eighteen", 18}, {"nineteen", 19}, {"twenty", 20},   {"thirty", 30},  {"forty", 40},   {"fifty", 50},
      {"sixty", 60},    {"seventy", 70},  {"eighty", 80},   {"ninety", 90}};
  return *kSmall;
}

std::optional<int64_t> WordUnderThousand(string_view text) {
  int64_t total = 0;
  bool any = false;
  size_t pos = 0;
  int64_t last = 0;
  while (pos < text.size()) {
    size_t end = text.find_first_of(" -", pos);
    if (end == kNone) end = text.size();
    const string_view word = text.substr(pos, end - pos);
    pos = end + 1;
    if (word == "and" && pos < text.size()) continue;
    if (word.empty()) continue;
    // "hundred", "three hundred", "twelve hundred"
    if (word == "hundred" && last != 100 && (!any || (total > 0 && total < 100 && total % 10 != 0))) {
      total = any ? total * 100 : 100;
      any = true;
      last = 100;
      continue;
    }
    const auto found = Small().find(word);
    if (found == Small().end()) return std::nullopt;
    // "twenty one" adds; "one two" is no number.
    if (any && last != 100 && !(last >= 20 && found->second > 0 && found->second < 10)) return std::nullopt;
    total += found->second;
    last = found->second;
    any = true;
  }
  return any ? std::optional(total) : std::nullopt;
}

// Where `name` stands in `text` as a word of its own.
size_t FindWord(string_view text, string_view name) {
  for (size_t at = text.find(name); at != kNone; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '-';
    const size_t end = at + name.size();
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '-')) return at;
  }
  return kNone;
}

// The number whose ordinal the word is: "first" -> "one", "twentieth" -> "twenty"; "" for no ordinal.
std::string CardinalOf(string_view word) {
  constexpr std::array<std::pair<string_view, string_view>, 8> kIrregular = {{{"first", "one"},
                                                                              {"second", "two"},
                                                                              {"third", "three"},
                                                                              {"fifth", "five"},
                                                                              {"eighth", "eight"},
                                                                              {"ninth", "nine"},
                                                                              {"twelfth", "twelve"},
                                                                              {"zeroth", "zero"}}};
  for (const auto& [ordinal, cardinal] : kIrregular) {
    if (word == ordinal) return std::string(cardinal);
  }
  if (word.ends_with("ieth")) return std::string(word.substr(0, word.size() - 4)) + "y";
  return word.ends_with("th") ? std::string(word.substr(0, word.size() - 2)) : "";
}

// "half", "quarter", "two thirds", "three twenty-fifths", "third" without its article is none.
std::optional<Rational> Fraction(string_view key) {
  if (key == "half") return Rational(1, 2);
  if (key == "quarter") return Rational(1, 4);
  for (size_t cut = key.find_first_of(" -"); cut != kNone; cut = key.find_first_of(" -", cut + 1)) {
    const auto above = NumberWord(key.substr(0, cut));
    const string_view part = key.substr(cut + 1);
    const auto below = above.has_value() ? DenominatorWord(part) : std::nullopt;
    if (!below.has_value()) continue;
    // "twenty-third", "one hundred third": ordinals.
    const bool singular = !part.ends_with('s') && (*above > 1 || part.find_first_of(" -") != kNone);
    if (singular && OrdinalWord(key).has_value()) continue;
    return Rational(*above, *below);
  }
  return std::nullopt;
}

// Whole numbers, fractions, and the two joined by "and": what may stand in front of a group.
std::optional<Rational> Amount(string_view key) {
  if (const auto whole = NumberWord(key)) return Rational(*whole);
  if (const auto part = Fraction(key)) return part;
  const size_t joined = key.rfind(" and ");
  if (joined == kNone) return std::nullopt;
  const auto whole = NumberWord(key.substr(0, joined));
  const auto part = whole.has_value() ? Fraction(key.substr(joined + 5)) : std::nullopt;
  return part.has_value() ? std::optional(Rational(*whole) + *part) : std::nullopt;
}

std::optional<Rational> Grouped(string_view key) {
  for (const Scale& group : kGroups) {
    const Rational size(group.value);
    if (key.starts_with(group.name) && key.substr(group.name.size()) == " and half") return size * Rational(3, 2);
    string_view count = key;
    if (count.ends_with('s')) count.remove_suffix(1);
    if (!count.ends_with(group.name)) continue;
    count.remove_suffix(group.name.size());
    if (!count.ends_with(' ')) continue;
    const auto amount = Amount(TrimSpaces(count));
    if (amount.has_value()) return *amount * size;
  }
  return std::nullopt;
}

// A lone "score" counts nothing.
std::optional<Rational> Multiplied(string_view key) {
  if (key == "dozen") return Rational(12);
  if (key == "twice") return Rational(2);
  if (key == "thrice") return Rational(3);
  const auto count = key.ends_with("fold") ? NumberWord(key.substr(0, key.size() - 4)) : std::nullopt;
  return count.has_value() && *count > 0 ? std::optional(Rational(*count)) : std::nullopt;
}

bool IsCountWord(string_view word) {
  if (word == "a" || word == "an" || word == "and" || word == "minus" || word == "negative") return true;
  if (CountInWords(word).has_value() || DenominatorWord(word).has_value()) return true;
  return word.find('-') != kNone && (NumberWord(word).has_value() || Fraction(word).has_value());
}

}  // namespace

std::optional<int64_t> NumberWord(string_view text) {
  if (text.size() > kLongestCount) return std::nullopt;
  int64_t total = 0;
  for (const auto& [name, scale] : kScales) {
    const size_t at = FindWord(text, name);
    if (at == kNone) continue;
    const string_view before = TrimSpaces(text.substr(0, at));
    const auto count = before.empty() ? std::optional<int64_t>(1) : WordUnderThousand(before);
    if (!count.has_value()) return std::nullopt;
    total += *count * scale;
    text = TrimSpaces(text.substr(at + name.size()));
    if (text.empty()) return total;
  }
  const auto rest = WordUnderThousand(text);
  return rest.has_value() ? std::optional(total + *rest) : std::nullopt;
}

std::optional<int64_t> OrdinalWord(string_view text) {
  const size_t last = text.find_last_of(" -");
  const size_t begin = last == kNone ? 0 : last + 1;
  const std::string cardinal = CardinalOf(text.substr(begin));
  if (cardinal.empty()) return std::nullopt;
  return NumberWord(std::string(text.substr(0, begin)) + cardinal);
}

std::optional<int64_t> DenominatorWord(string_view text) {
  if (text == "half" || text == "halves") return 2;
  if (text.ends_with('s')) text.remove_suffix(1);
  if (text == "quarter") return 4;
  const auto ordinal = OrdinalWord(text);
  return ordinal.has_value() && *ordinal > 2 ? ordinal : std::nullopt;
}

std::optional<Rational> CountInWords(string_view key) {
  if (key.size() > kLongestCount) return std::nullopt;
  for (const string_view sign : {"minus ", "negative "}) {
    if (!key.starts_with(sign)) continue;
    const auto value = CountInWords(key.substr(sign.size()));
    return value.has_value() ? std::optional(Rational(0) - *value) : std::nullopt;
  }
  if (const auto amount = Amount(key)) return amount;
  if (const auto grouped = Grouped(key)) return grouped;
  return Multiplied(key);
}

string_view LastCountInWords(string_view text) {
  if (text.size() > kWindow) text.remove_prefix(text.size() - kWindow);
  const std::string lower = LowerAscii(text);
  if (lower.find_first_of("0123456789") != std::string::npos) return "";
  const auto in_word = [&](size_t i) { return IsAsciiLetter(lower[i]) || lower[i] == '-'; };
  // From the end: the words of one count, joined by blanks.
  for (size_t end = lower.size(); end > 0;) {
    while (end > 0 && !in_word(end - 1)) --end;
    size_t begin = end;
    size_t from = end;
    while (from > 0 && end - from < kLongestCount) {
      size_t word = from;
      while (word > 0 && in_word(word - 1)) --word;
      if (word == from || !IsCountWord(string_view(lower).substr(word, from - word))) break;
      begin = word;
      from = word > 0 && lower[word - 1] == ' ' ? word - 1 : word;
      if (from == word) break;
    }
    const string_view run = string_view(lower).substr(begin, end - begin);
    const std::string key = TextKey(run);
    if (begin < end && key != "one" && CountInWords(key).has_value()) return text.substr(begin, end - begin);
    while (end > 0 && in_word(end - 1)) --end;
  }
  return "";
}

}  // namespace iha::scoring::math
