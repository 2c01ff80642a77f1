// Whole answers that are no formulas (parser.h, ParseSpecialForm).
#include <algorithm>
#include <vector>

#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/dates.h"
#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/parser.h"
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

// "a third": the article makes it a part, not an ordinal.
std::optional<Rational> OnePart(string_view cleaned, string_view key) {
  const auto below = LowerAscii(TrimSpaces(cleaned)).starts_with("a ") ? DenominatorWord(key) : std::nullopt;
  return below.has_value() ? std::optional(Rational(1, *below)) : std::nullopt;
}

// "二十三", "三百零五", "五分之二".
std::optional<Rational> ChineseNumber(string_view cleaned) {
  const string_view text = TrimSpaces(cleaned);
  if (text.size() > 36 || text.size() % 3 != 0 || text.empty()) return std::nullopt;
  if (text.starts_with("负") && text.size() > 3) {
    const auto value = ChineseNumber(text.substr(3));
    return value.has_value() ? std::optional(Rational(0) - *value) : std::nullopt;
  }
  if (const size_t point = text.find("点"); point != string_view::npos && point > 0) {
    auto value = ChineseNumber(text.substr(0, point));
    Rational place(1);
    for (size_t i = point + 3; i < text.size() && value.has_value(); i += 3) {
      const auto digit = ChineseNumber(text.substr(i, 3));
      place = place / Rational(10);
      value = digit.has_value() && *digit < Rational(10) ? std::optional(*value + *digit * place) : std::nullopt;
    }
    return value;
  }
  if (const size_t of = text.find("分之"); of != string_view::npos) {
    const auto below = ChineseNumber(text.substr(0, of));
    const auto above = ChineseNumber(text.substr(of + 6));
    if (!below.has_value() || !above.has_value() || below->Sign() == 0) return std::nullopt;
    return *above / *below;
  }
  constexpr string_view kDigits = "零一二三四五六七八九";
  int64_t total = 0;
  int64_t section = 0;
  int64_t digit = -1;
  for (size_t i = 0; i < text.size(); i += 3) {
    const string_view mark = text.substr(i, 3);
    const size_t at = kDigits.find(mark);
    const int64_t scale = mark == "十" ? 10 : mark == "百" ? 100 : mark == "千" ? 1000 : mark == "万" ? 10000 : 0;
    if (at != string_view::npos && at % 3 == 0) {
      if (digit > 0) return std::nullopt;
      digit = static_cast<int64_t>(at / 3);
    } else if (mark == "两") {
      digit = 2;
    } else if (scale == 10000) {
      total = (total + section + std::max<int64_t>(digit, 0)) * scale;
      section = 0;
      digit = -1;
    } else if (scale > 0) {
      section += (digit < 0 ? 1 : digit) * scale;
      digit = -1;
    } else {
      return std::nullopt;
    }
  }
  return Rational(total + section + std::max<int64_t>(digit, 0));
}

// "five percent", "twelve apples", "three times as many": number words and a unit.
Ref WordsWithUnit(Tree& tree, string_view key) {
  if (const size_t as = key.find(" as "); as != string_view::npos) {
    const string_view count = key.substr(0, as);
    const auto value = CountInWords(count.ends_with(" times") ? count.substr(0, count.size() - 6) : count);
    return value.has_value() ? tree.Number(*value) : kNoRef;
  }
  const size_t last = key.rfind(' ');
  if (last == string_view::npos) return kNoRef;
  const string_view unit = key.substr(last + 1);
  if (!IsUnit(unit) && !IsPercentWord(unit)) return kNoRef;
  const auto value = CountInWords(key.substr(0, last));
  if (!value.has_value()) return kNoRef;
  const Ref number = tree.Number(*value);
  return IsPercentWord(unit) ? tree.New(Kind::kPercent, "", {number}) : number;
}

// "square root of 2", "cube root of 5".
Ref RootInWords(Tree& tree, string_view key) {
  for (const auto& [words, index] : {std::pair<string_view, int64_t>{"square root of ", 2}, {"cube root of ", 3}}) {
    if (!key.starts_with(words)) continue;
    const string_view rest = key.substr(words.size());
    auto value = Rational::ParseDecimal(rest);
    if (const auto word = NumberWord(rest)) value = Rational(*word);
    return value.has_value() ? tree.Pow(tree.Number(*value), tree.Number(Rational(1, index))) : kNoRef;
  }
  return kNoRef;
}

// "all real numbers except 1", "all reals except x = 1 and x = 2".
Ref AllExcept(Tree& tree, string_view cleaned) {
  const std::string lower = LowerAscii(cleaned);
  const size_t except = lower.find("except");
  if (except == string_view::npos || !TextKey(string_view(lower).substr(0, except)).starts_with("all real"))
    return kNoRef;
  string_view rest = cleaned.substr(except + 6);
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '}')) rest.remove_prefix(1);
  for (const string_view word : {"for ", "where ", "when "}) {
    if (rest.starts_with(word)) rest.remove_prefix(word.size());
  }
  const Parsed parsed = ParseAnswer(tree, rest, Commas::kSeparators);
  if (!parsed.ok || parsed.root == kNoRef) return kNoRef;
  std::vector<Ref> holes = {parsed.root};
  if (tree.Is(parsed.root, Kind::kList)) holes = tree[parsed.root].kids;
  for (Ref& hole : holes) {
    const Node& node = tree[hole];
    if (node.kind == Kind::kRelation && node.text == "=" && node.kids.size() == 2) hole = node.kids[1];
  }
  const Ref set = tree.New(Kind::kSet, "", std::move(holes));
  return tree.New(Kind::kMinus, "", {tree.New(Kind::kNamedSet, "R", {}), set});
}

// "no solution", "there are no real roots", "it has no solutions".
bool SaysNothing(std::vector<string_view> words) {
  const auto in = [](string_view word, std::initializer_list<string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  while (!words.empty() && in(words[0], {"there", "is", "are", "it", "equation", "system", "has", "so", "thus", "hence",
                                         "therefore", "then", "we", "have"})) {
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
  // "sinx"
  if (word.back() >= 'x' && word.back() <= 'z' && IsFunctionName(word.substr(0, word.size() - 1))) return false;
  if (std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) return word.size() > 5;
  if (std::is_sorted(word.begin(), word.end())) return false;
  return LowerAscii(word).find_first_of("aeiouy") != string_view::npos;
}

// "yes" and "no" of several languages, and "true" and "false"; "" for anything else.
string_view YesNo(string_view key) {
  if (OneOf(key, {"yes", "ja", "oui", "sí", "sim", "да", "是", "はい"})) return "yes";
  if (OneOf(key, {"no", "nein", "non", "não", "нет", "否", "いいえ"})) return "no";
  if (OneOf(key, {"true", "正确", "верно", "wahr", "vrai", "verdadero"})) return "true";
  return OneOf(key, {"false", "错误", "неверно", "falsch", "faux", "falso"}) ? "false" : string_view();
}

// "①③", "①、③": the numbers of statements, in any order.
Ref CircledNumbers(Tree& tree, string_view cleaned) {
  std::vector<Ref> numbers;
  for (size_t i = 0; i < cleaned.size();) {
    const string_view mark = cleaned.substr(i, 3);
    if (mark.starts_with("\u2460"[0]) && mark >= "\u2460" && mark <= "\u2468") {
      numbers.push_back(tree.New(Kind::kText, std::string(mark), {}));
      i += 3;
    } else if (mark == "\u3001") {
      i += 3;
    } else if (cleaned[i] == ' ' || cleaned[i] == ',') {
      ++i;
    } else {
      return kNoRef;
    }
  }
  return numbers.empty() ? kNoRef : tree.New(Kind::kSet, "", std::move(numbers));
}

// "red, blue, and green", "\\text{Tom}, \\text{Dick}": words without mathematics, one of them a plain one.
Ref WordList(Tree& tree, string_view cleaned) {
  std::string text(cleaned);
  for (const string_view command : {"\\text{", "\\textbf{", "\\mathrm{", "\\mbox{"}) {
    for (size_t at = text.find(command); at != string_view::npos; at = text.find(command)) {
      const size_t close = text.find('}', at);
      if (close == string_view::npos) return kNoRef;
      text.erase(close, 1);
      text.replace(at, command.size(), " ");
    }
  }
  std::vector<Ref> items;
  bool word = false;
  std::string mark = ",";
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    size_t skip = 1;
    for (const string_view join : {" and ", " or "}) {
      const size_t at = text.find(join, begin);
      if (at >= end || TrimSpaces(string_view(text).substr(begin, at - begin)).empty()) continue;
      end = at;
      skip = join.size();
      mark = join == " or " ? "or" : "and";
    }
    string_view item = TrimSpaces(string_view(text).substr(begin, end - begin));
    for (const string_view join : {"and ", "or "}) {  // "red, and green"
      if (item.starts_with(join)) item.remove_prefix(join.size());
    }
    const std::string key = TextKey(item);
    const bool letters = std::all_of(item.begin(), item.end(), [](char c) {
      return IsAsciiLetter(c) || c == ' ' || c == '-' || c == '\'' || static_cast<unsigned char>(c) >= 0x80;
    });
    if (item.size() < 2 || key.empty() || !letters || NumberWord(key).has_value() || PlainCommand(key).has_value()) {
      return kNoRef;
    }
    const auto words = Words(item);
    word = word || std::any_of(words.begin(), words.end(), [](string_view w) { return IsPlainWord(w); });
    const auto weekday = WeekdayOf(key);
    items.push_back(tree.New(Kind::kText, weekday.has_value() ? std::string(*weekday) : key, {}));
    begin = end + skip;
  }
  return word && items.size() > 1 ? tree.New(Kind::kList, mark, std::move(items)) : kNoRef;
}

}  // namespace

Ref ParseSpecialForm(Tree& tree, string_view cleaned) {
  if (cleaned.size() > kLongestSpecial) return kNoRef;
  const std::string key = TextKey(cleaned);
  const std::vector<string_view> words = Words(key);
  if (words.empty()) return kNoRef;
  if (const Ref date = ParseDate(tree, words, cleaned); date != kNoRef) return date;
  if (const Ref time = ParseTime(tree, words, cleaned); time != kNoRef) return time;
  if (const auto weekday = WeekdayOf(key)) return tree.New(Kind::kText, std::string(*weekday), {});
  for (const string_view said : {"convergent", "divergent"}) {  // "converges", "diverges"
    const std::string verb = std::string(said.substr(0, said.size() - 3)) + "es";
    if (key == said || key == verb || key.ends_with(" " + verb)) {
      return tree.New(Kind::kText, std::string(said), {});
    }
  }
  if (const string_view said = YesNo(key); !said.empty()) return tree.New(Kind::kText, std::string(said), {});
  if (const auto number = CountInWords(key)) return tree.Number(*number);
  if (const auto number = WordsWithUnit(tree, key); number != kNoRef) return number;
  if (key == "positive infinity") return tree.New(Kind::kConstant, "inf", {});
  if (key == "negative infinity" || key == "minus infinity") return tree.Neg(tree.New(Kind::kConstant, "inf", {}));
  if (words.size() == 1 && MonthOf(key).has_value())
    return tree.New(Kind::kText, "month " + std::to_string(*MonthOf(key)), {});
  if (const auto part = OnePart(cleaned, key)) return tree.Number(*part);
  if (const auto number = ChineseNumber(cleaned)) return tree.Number(*number);
  if (const Ref root = RootInWords(tree, key); root != kNoRef) return root;
  if (const Ref rest = AllExcept(tree, cleaned); rest != kNoRef) return rest;
  if (SaysNothing(words) ||
      OneOf(key, {"none", "empty set", "empty", "无解", "нет решений", "keine lösung", "aucune solution",
                  "pas de solution", "sin solución", "no hay solución", "sem solução"})) {
    return tree.New(Kind::kSet, "", {});
  }
  if (OneOf(key, {"undefined", "does not exist", "dne", "not defined", "不存在"}) || key.ends_with(" does not exist"))
    return tree.New(Kind::kConstant, "undefined", {});
  if (OneOf(key, {"infinite", "infinity", "infinitely many", "infinitely many solutions", "there are infinitely many",
                  "diverges to infinity", "无穷大", "无穷"})) {
    return tree.New(Kind::kConstant, "inf", {});
  }
  if (OneOf(key, {"all real numbers", "all reals", "all real x", "real numbers", "any real number", "any real x",
                  "every real number", "x is any real number", "x can be any real number"}))
    return tree.New(Kind::kNamedSet, "R", {});
  if (OneOf(key, {"all integers", "all positive integers", "positive integers", "all natural numbers"}))
    return tree.New(Kind::kNamedSet, key == "all integers" ? "Z" : key == "all natural numbers" ? "N" : "Z^+", {});
  if (const auto ordinal = OrdinalWord(key)) return tree.Number(Rational(*ordinal));
  if (const Ref numbers = CircledNumbers(tree, cleaned); numbers != kNoRef) return numbers;
  if (const Ref list = WordList(tree, cleaned); list != kNoRef) return list;
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
