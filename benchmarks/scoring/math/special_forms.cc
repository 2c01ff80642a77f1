// Whole answers that are no formulas (parser.h, ParseSpecialForm).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/parser.h"
#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kLongestSpecial = 80;

std::vector<string_view> Words(string_view key) {
  std::vector<string_view> words;
  while (!key.empty()) {
    const size_t end = std::min(key.find(' '), key.size());
    if (end > 0) words.push_back(key.substr(0, end));
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return words;
}

// "20", "20th" -> 20.
std::optional<int> DayOrYear(string_view word) {
  for (const string_view suffix : {"th", "st", "nd", "rd"}) {
    if (word.ends_with(suffix)) word.remove_suffix(2);
  }
  if (word.empty() || word.size() > 4 || word.find_first_not_of("0123456789") != string_view::npos) return std::nullopt;
  return std::stoi(std::string(word));
}

// "June 20", "20th of June, 2008", "June 2008".
Ref Date(Tree& tree, const std::vector<string_view>& words) {
  if (words.size() < 2 || words.size() > 5) return kNoRef;
  int month = 0;
  std::string day;
  std::string year;
  for (const string_view word : words) {
    if (word == "of") continue;
    if (const auto found = MonthOf(word); found.has_value() && month == 0) {
      month = *found;
    } else if (const auto number = DayOrYear(word)) {
      std::string& part = *number > 31 ? year : day;
      if (!part.empty()) return kNoRef;
      part = std::to_string(*number);
    } else {
      return kNoRef;
    }
  }
  if (month == 0 || (day.empty() && year.empty())) return kNoRef;
  return tree.New(Kind::kDate, fmt::format("{}-{}-{}", year, month, day), {});
}

// "6:30pm", "12 noon": hours 1 to 12 with am, pm, noon or midnight.
Ref Time(Tree& tree, string_view cleaned) {
  std::string compact;
  const std::string lower = LowerAscii(cleaned);
  for (size_t i = 0; i < lower.size(); ++i) {
    const string_view rest = string_view(lower).substr(i);
    for (const string_view command : {"\\text", "\\mbox", "\\mathrm"}) {
      if (rest.starts_with(command)) i += command.size();
    }
    if (i < lower.size() && (IsAsciiLetter(lower[i]) || IsAsciiDigit(lower[i]))) compact += lower[i];
  }
  if (compact == "noon" || compact == "midnight") return tree.New(Kind::kTime, compact == "noon" ? "720" : "0", {});
  const size_t begin = compact.find_first_not_of("0123456789");
  if (begin == 0 || begin == string_view::npos || begin > 4) return kNoRef;
  const string_view half = string_view(compact).substr(begin);
  const bool am = half == "am" || half == "midnight";
  const bool pm = half == "pm" || half == "noon";
  if (!am && !pm) return kNoRef;
  const string_view digits = string_view(compact).substr(0, begin);
  const bool minutes = digits.size() > 2;
  const int hour = std::stoi(std::string(digits.substr(0, minutes ? digits.size() - 2 : digits.size())));
  const int minute = minutes ? std::stoi(std::string(digits.substr(digits.size() - 2))) : 0;
  if (hour < 1 || hour > 12 || minute > 59) return kNoRef;
  return tree.New(Kind::kTime, std::to_string((hour % 12 + (pm ? 12 : 0)) * 60 + minute), {});
}

// "1776-07-04".
Ref IsoDate(Tree& tree, string_view cleaned) {
  const string_view text = TrimSpaces(cleaned);
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return kNoRef;
  for (const size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!IsAsciiDigit(text[i])) return kNoRef;
  }
  const auto part = [&](size_t at, size_t size) { return std::stoi(std::string(text.substr(at, size))); };
  if (part(5, 2) < 1 || part(5, 2) > 12 || part(8, 2) < 1 || part(8, 2) > 31) return kNoRef;
  return tree.New(Kind::kDate, fmt::format("{}-{}-{}", part(0, 4), part(5, 2), part(8, 2)), {});
}

// "two thirds", "three and a half", "minus five", "two dozen": TextKey has dropped the articles.
std::optional<Rational> NumberInWords(string_view key) {
  for (const string_view sign : {"minus ", "negative "}) {
    if (!key.starts_with(sign)) continue;
    const auto value = NumberInWords(key.substr(sign.size()));
    return value.has_value() ? std::optional(Rational(0) - *value) : std::nullopt;
  }
  if (const auto whole = NumberWord(key)) return Rational(*whole);
  if (key == "half") return Rational(1, 2);
  if (key == "dozen") return Rational(12);
  if (key.ends_with(" dozen")) {
    const auto count = NumberWord(key.substr(0, key.size() - 6));
    return count.has_value() ? std::optional(Rational(*count * 12)) : std::nullopt;
  }
  const size_t last = key.find_last_of(" -");
  if (last == string_view::npos) return std::nullopt;
  string_view count = key.substr(0, last);
  const auto below = DenominatorWord(key.substr(last + 1));
  if (!below.has_value()) return std::nullopt;
  Rational whole(0);
  if (const size_t joined = count.rfind(" and"); joined != string_view::npos) {
    const auto first = NumberWord(count.substr(0, joined));
    if (!first.has_value()) return std::nullopt;
    whole = Rational(*first);
    count = TrimSpaces(count.substr(joined + 4));
  }
  const auto above = count.empty() ? std::optional<int64_t>(1) : NumberWord(count);
  if (!above.has_value()) return std::nullopt;
  return whole + Rational(*above, *below);
}

// "no solution", "there are no real roots", "it has no solutions".
bool SaysNothing(std::vector<string_view> words) {
  const auto in = [](string_view word, std::initializer_list<string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  while (!words.empty() && in(words[0], {"there", "is", "are", "it", "equation", "system", "has"})) {
    words.erase(words.begin());
  }
  if (words.size() < 2 || words[0] != "no") return false;
  words.erase(words.begin());
  while (words.size() > 1 && in(words[0], {"real", "such", "integer", "possible", "valid"})) words.erase(words.begin());
  if (words.size() == 2 && in(words[1], {"exist", "exists"})) words.pop_back();
  return words.size() == 1 && in(words[0], {"solution", "solutions", "root", "roots", "value", "values", "number",
                                            "numbers", "integer", "integers"});
}

bool OneOf(string_view key, std::initializer_list<string_view> list) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

// A word that is meant as a word: "Even", "red", "odd". Capitals alone (ABC) and letters in order (abc) are names.
bool IsPlainWord(string_view word) {
  if (word.size() < 3 || PlainCommand(LowerAscii(word)).has_value()) return false;
  if (std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) return word.size() > 5;
  if (std::is_sorted(word.begin(), word.end())) return false;
  return LowerAscii(word).find_first_of("aeiouy") != string_view::npos;
}

}  // namespace

Ref ParseSpecialForm(Tree& tree, string_view cleaned) {
  if (cleaned.size() > kLongestSpecial) return kNoRef;
  const std::string key = TextKey(cleaned);
  const std::vector<string_view> words = Words(key);
  if (words.empty()) return kNoRef;
  if (const Ref date = Date(tree, words); date != kNoRef) return date;
  if (const Ref date = IsoDate(tree, cleaned); date != kNoRef) return date;
  if (const Ref time = Time(tree, cleaned); time != kNoRef) return time;
  if (key == "yes" || key == "no" || key == "true" || key == "false") return tree.New(Kind::kText, key, {});
  if (const auto number = NumberInWords(key)) return tree.Number(*number);
  if (SaysNothing(words) || OneOf(key, {"none", "empty set"})) {
    return tree.New(Kind::kSet, "", {});
  }
  if (OneOf(key, {"undefined", "does not exist", "dne", "not defined"}))
    return tree.New(Kind::kConstant, "undefined", {});
  if (OneOf(key, {"infinite", "infinity", "infinitely many", "infinitely many solutions"})) {
    return tree.New(Kind::kConstant, "inf", {});
  }
  if (OneOf(key, {"all real numbers", "all reals", "all real x", "real numbers"}))
    return tree.New(Kind::kNamedSet, "R", {});
  const bool letters_only = std::all_of(key.begin(), key.end(), [](char c) {
    return c == ' ' || IsAsciiLetter(c) || static_cast<unsigned char>(c) >= 0x80;
  });
  const bool connected = std::any_of(words.begin(), words.end(), [](string_view w) { return IsConnective(w); });
  if (!letters_only || connected || cleaned.find_first_of(",;=<>()[]^_+") != string_view::npos) return kNoRef;
  // The key is in lower case; whether a word is written in capitals shows in the text.
  size_t begin = 0;
  bool word_found = false;
  for (size_t i = 0; i <= cleaned.size(); ++i) {
    if (i < cleaned.size() && IsAsciiLetter(cleaned[i])) continue;
    const string_view run = cleaned.substr(begin, i - begin);
    const bool command = begin > 0 && cleaned[begin - 1] == '\\';
    if (command &&
        !(run.starts_with("text") || run.starts_with("math") || run == "mbox" || run == "left" || run == "right"))
      return kNoRef;
    word_found = word_found || (!command && IsPlainWord(run));
    begin = i + 1;
  }
  return word_found ? tree.New(Kind::kText, key, {}) : kNoRef;
}

}  // namespace iha::scoring::math
