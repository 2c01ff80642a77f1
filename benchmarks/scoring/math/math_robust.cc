#include "benchmarks/scoring/math/math_robust.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/dates.h"
#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/lexer.h"
#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/parser.h"
#include "benchmarks/scoring/math/quantities.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring {
namespace math {
namespace {

// One side as text and, once parsed, as trees by reading of its commas.
struct Side {
  std::string cleaned;
  Parsed plain;
  Ref root = kNoRef;
  bool special = false;
};

// "\text{I and III}", "\text{The function is odd}" as a whole answer: what it lists, what it says. Other texts as they
// are.
std::string WithoutListText(std::string cleaned) {
  const std::string_view text = TrimSpaces(cleaned);
  // "f \text{ is odd}"
  if (text.size() > 2 && IsAsciiLetter(text[0]) && text.ends_with('}')) {
    const std::string_view rest = TrimSpaces(text.substr(1));
    for (const std::string_view word : {"even", "odd"}) {
      if (rest == fmt::format("\\text{{ is {}}}", word)) return std::string(word);
    }
  }
  if (!text.starts_with("\\text{") || text.find('}') != text.size() - 1) return cleaned;
  std::string_view inside = text.substr(6, text.size() - 7);
  for (const std::string_view tail : {" only", " wins", " will win", " can win", " always wins"}) {
    if (inside.ends_with(tail)) inside.remove_suffix(tail.size());
  }
  const bool list = inside.find(" and ") != std::string_view::npos || inside.find(" or ") != std::string_view::npos ||
                    inside.find(", ") != std::string_view::npos;
  if (const std::string_view word = YesOrNo(inside); !word.empty()) return std::string(word);
  if (const std::string_view said = SaidOf(inside); !said.empty()) return std::string(said);
  return list || inside.size() + 7 < text.size() ? std::string(inside) : cleaned;
}

Side Read(Tree& tree, Comparer& comparer, const std::string& answer) {
  Side side;
  side.cleaned = WithoutListText(CleanAnswer(answer));
  const Ref form = ParseSpecialForm(tree, side.cleaned);
  side.special = form != kNoRef;
  if (side.special) {
    side.plain.ok = true;
    side.plain.root = form;
  } else {
    side.plain = ParseAnswer(tree, side.cleaned, Commas::kThousands);
  }
  if (!side.plain.ok) {
    const std::vector<Ref> dates = NumericDates(tree, side.cleaned);
    if (!dates.empty()) side.plain = {.root = dates[0], .ok = true, .error = ""};
  }
  side.root = side.plain.ok ? comparer.Rewrite(side.plain.root) : kNoRef;
  return side;
}

bool OneNumber(const Tree& tree, Ref ref) {
  const Kind kind = tree.kind(ref);
  return kind == Kind::kNumber || kind == Kind::kPercent || kind == Kind::kMul || kind == Kind::kPow ||
         kind == Kind::kAdd || kind == Kind::kConstant || kind == Kind::kFunction || kind == Kind::kDegree;
}

// "5 m", "3\times 10^8 m/s" without the letters of its unit; "" when it ends otherwise.
std::string WithoutUnitLetter(std::string_view cleaned) {
  const std::string_view text = TrimSpaces(cleaned);
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    const char before = text[i - 1];
    const bool value = IsAsciiDigit(before) || before == '}' || before == ')';
    if (!value || !IsAsciiSpace(text[i]) || !IsAsciiLetter(text[i + 1])) continue;
    if (IsUnitProduct(text.substr(i + 1))) return std::string(text.substr(0, i));
  }
  return "";
}

// "0.25 (25\%)": what stands before and in the brackets at the end.
std::optional<std::pair<std::string, std::string>> Restated(std::string_view cleaned) {
  const std::string_view text = TrimSpaces(cleaned);
  const size_t open = text.ends_with(')') ? text.rfind('(') : std::string_view::npos;
  if (open == std::string_view::npos) return std::nullopt;
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  std::string_view before = text.substr(0, open);
  if (inside.ends_with("\\right")) inside.remove_suffix(6);
  if (before.ends_with("\\left")) before.remove_suffix(5);
  if (before.size() < 2 || !IsAsciiSpace(before.back())) return std::nullopt;
  return std::pair(std::string(TrimSpaces(before)), std::string(inside));
}

// The other readings of commas, dates and unit letters that the two forms allow (docs/grading.md, rules `commas`,
// `date` and units).
class OtherReadings {
 public:
  OtherReadings(Tree& tree, Comparer& comparer) : tree_(tree), comparer_(comparer) {}

  // `first` is the verdict of the plain readings.
  Result Try(const Side& a, const Side& b, Result first) {
    const std::array<std::pair<const Side*, const Side*>, 2> sides = {{{&a, &b}, {&b, &a}}};
    for (const auto& [side, other] : sides) {
      for (const auto& [rule, reading] : Readings(*side, *other)) {
        if (reading == kNoRef) continue;
        Result result = comparer_.Compare(side == &a ? reading : a.root, side == &a ? b.root : reading);
        if (result.outcome == MathOutcome::kEqual) return Equal(rule + result.rule);
      }
    }
    if (auto derivatives = comparer_.CompareDerivatives(a.root, b.root)) return *std::move(derivatives);
    return first;
  }

 private:
  Ref Again(std::string_view cleaned, Commas commas) {
    const Parsed parsed = ParseAnswer(tree_, cleaned, commas);
    return parsed.ok ? comparer_.Rewrite(parsed.root) : kNoRef;
  }

  // `value`, where `again` says it once more as a percentage or a decimal; kNoRef for anything else.
  Ref Twice(std::string_view value, std::string_view again) {
    const Ref first = Again(value, Commas::kThousands);
    const Ref second = first == kNoRef ? kNoRef : Again(again, Commas::kThousands);
    if (second == kNoRef || HasSymbols(tree_, first) || tree_.kind(first) == Kind::kBracket) return kNoRef;
    const auto decimal = [&](Ref ref) {
      return tree_.Is(ref, Kind::kPercent) || (tree_.Is(ref, Kind::kNumber) && tree_[ref].digits > 0);
    };
    const bool other_form = decimal(first) != decimal(second) || tree_.kind(first) != tree_.kind(second);
    return other_form && comparer_.Compare(first, second).outcome == MathOutcome::kEqual ? first : kNoRef;
  }

  std::vector<std::pair<std::string, Ref>> Readings(const Side& side, const Side& other) {
    std::vector<std::pair<std::string, Ref>> out;
    const auto holds = [&](Kind kind) { return Contains(tree_, other.root, kind); };
    const bool bracketed = holds(Kind::kBracket) || holds(Kind::kSet) || holds(Kind::kList);
    // "1,000" is no list of 1 and 0.
    const bool padded = side.cleaned.find(",0") != std::string::npos;
    if (side.plain.thousands_commas && bracketed && !padded) {
      out.emplace_back("commas: ", Again(side.cleaned, Commas::kSeparators));
    }
    bool separated = false;
    for (const char* mark : {";", " or ", " and ", "text{or}", "text{and}"}) {
      separated = separated || side.cleaned.find(mark) != std::string::npos;
    }
    const Node& node = tree_[other.root];
    const Ref stated = node.kind == Kind::kRelation && node.text == "=" ? node.kids.back() : other.root;
    const bool pair = tree_.Is(side.root, Kind::kBracket);  // "(1, 2)" is no 1.2
    if (side.plain.decimal_commas && ((OneNumber(tree_, stated) && !pair) || (bracketed && separated))) {
      out.emplace_back("commas: ", Again(side.cleaned, Commas::kDecimal));
    }
    if (side.plain.ok && (tree_.Is(stated, Kind::kBracket) || tree_.Is(other.root, Kind::kList))) {
      out.emplace_back("name = value: ", comparer_.TupleOfNames(side.plain.root));
    }
    if (tree_.Is(other.root, Kind::kDate)) {
      for (const Ref date : NumericDates(tree_, side.cleaned)) out.emplace_back("", date);
    }
    if (const auto restated = Restated(side.cleaned)) out.emplace_back("", Twice(restated->first, restated->second));
    if (OneNumber(tree_, other.root) && !HasSymbols(tree_, other.root) && !tree_.Is(side.root, Kind::kNumber)) {
      if (const std::string value = WithoutUnitLetter(side.cleaned); !value.empty()) {
        out.emplace_back("units: ", Again(value, Commas::kThousands));
      }
    }
    return out;
  }

  Tree& tree_;
  Comparer& comparer_;
};

// Quantities in different units of one kind; nullopt where units say nothing (docs/grading.md, rule `quantity`).
std::optional<Result> CompareQuantities(const std::string& a, const std::string& b, const Tree& tree, Ref left,
                                        Ref right) {
  const auto x = ParseQuantity(a);
  const auto y = ParseQuantity(b);
  if (x.has_value() && y.has_value()) {
    if (x->dimension == y->dimension && x->total == y->total) return Equal("quantity");
    if (x->compound() || y->compound()) return Different("quantity");
    return std::nullopt;
  }
  const auto& known = x.has_value() ? x : y;
  if (!known.has_value() || !known->compound()) return std::nullopt;
  // A bare number is the total in one of the units that the other side names.
  const Ref other = x.has_value() ? right : left;
  if (other == kNoRef || !tree.Is(other, Kind::kNumber)) return Different("quantity");
  for (const Rational& unit : known->units) {
    if (tree[other].value * unit == known->total) return Equal("quantity");
  }
  return Different("quantity");
}

// "She needs three dozen eggs" against a number; nullopt where no side is a sentence that counts in words.
std::optional<Result> CompareCounts(Tree& tree, Comparer& comparer, const Side& a, const Side& b) {
  const auto is_words = [&](const Side& side) {
    if (!side.plain.ok || tree.Is(side.root, Kind::kText)) return true;
    const Shape shape = ShapeOf(side.cleaned);
    return !side.special && shape.prose > 0 && !shape.digits && !shape.formula;
  };
  if (is_words(a) == is_words(b)) return std::nullopt;
  const Side& words = is_words(a) ? a : b;
  const Ref number = is_words(a) ? b.root : a.root;
  const auto count = CountInWords(TextKey(LastCountInWords(words.cleaned)));
  if (!count.has_value() || number == kNoRef || !OneNumber(tree, number)) return std::nullopt;
  Result result = comparer.Compare(tree.Number(*count), number);
  if (result.outcome == MathOutcome::kEqual) result.rule = "words: " + result.rule;
  return result;
}

// Every mark of a text, without blanks, brace pairs' sizes and math delimiters.
std::string Marks(std::string_view cleaned) {
  std::string out;
  for (size_t i = 0; i < cleaned.size(); ++i) {
    const std::string_view rest = cleaned.substr(i);
    if (rest.starts_with("\\left") && !rest.starts_with("\\leftr")) {
      i += 4;
    } else if (rest.starts_with("\\right") && !rest.starts_with("\\righta")) {
      i += 5;
    } else if (!IsAsciiSpace(cleaned[i])) {
      out += cleaned[i];
    }
  }
  return out;
}

// The letter that `text`, of which `given` was extracted, chooses where the other side is a choice.
std::optional<char> ChosenBy(std::string_view text, const MathAnswer& given) {
  const auto bare = BareChoice(given.text);
  if (bare.has_value() || IsChoiceList(given.text)) return bare;
  if (const auto lower = LowerChoice(given.text)) return lower;
  return ExtractChoice(text);
}

// The day that the last sentence names, the "yes" or "no" that a text begins with, where the other side is one; "" for
// anything else.
std::string_view NamedAs(std::string_view text, std::string_view other) {
  const std::string key = TextKey(other);
  if (key == "yes" || key == "no" || key == "true" || key == "false") return YesOrNo(text);
  if (!WeekdayOf(key).has_value()) return "";
  text = text.substr(0, text.find_last_not_of(" .\n!*$") + 1);
  const size_t stop = std::max(text.rfind(". ") + 1, text.rfind('\n') + 1);
  for (size_t end = text.size(); end > stop;) {
    size_t begin = end;
    while (begin > stop && IsAsciiLetter(text[begin - 1])) --begin;
    const std::string word = LowerAscii(text.substr(begin, end - begin));
    if (word.ends_with("day") && WeekdayOf(word).has_value()) return text.substr(begin, end - begin);
    end = begin == end ? end - 1 : begin;
  }
  return "";
}

// The solution of an equation is its last row, a last expression what it comes to where the other side is one value.
MathAnswer Concluded(MathAnswer answer, const MathAnswer& other, std::string_view text) {
  if (answer.step == "last expression" || answer.step == "whole text" || !answer.found()) {
    const Emphasis plain = WithoutBold(text);
    if (const std::string_view named = NamedAs(plain.text, other.text); !named.empty()) {
      return {std::string(named), "last sentence"};
    }
  }
  answer.text = LastRowOf(answer.text);
  if (answer.step == "last expression" && !IsRelation(other.text)) answer.text = std::string(ConclusionOf(answer.text));
  return answer;
}

MathVerdict Verdict(Result result) { return {result.outcome, std::move(result.rule)}; }

MathVerdict JudgeAnswers(const std::string& a, const std::string& b, const MathBudget& budget) {
  const std::string left_key = TextKey(a);
  const std::string right_key = TextKey(b);
  if (static_cast<int64_t>(std::max(a.size(), b.size())) > budget.answer_bytes) {
    return a == b ? MathVerdict{MathOutcome::kEqual, "same text"}
                  : MathVerdict{MathOutcome::kUndecided, "budget: longer than is read"};
  }
  Tree tree(budget);
  Comparer comparer(tree);
  const Side left = Read(tree, comparer, a);
  const Side right = Read(tree, comparer, b);
  const std::string_view left_text = TrimSpaces(left.cleaned);
  const std::string_view right_text = TrimSpaces(right.cleaned);
  if (!left_text.empty() && left_text == right_text) return {MathOutcome::kEqual, "same text"};
  if (left_text.size() == right_text.size() && ShapeOf(left_text).prose > 0 &&
      LowerLetters(left_text) == LowerLetters(right_text)) {
    return {MathOutcome::kEqual, "text"};
  }
  // Words compare as words, whatever the other side could be read as. What can't be read compares mark by mark, since
  // "(1,2" is not "1.2".
  if ((left.special || right.special) && left_key == right_key && !left_key.empty()) {
    return {MathOutcome::kEqual, "text"};
  }
  if (auto quantities = CompareQuantities(a, b, tree, left.root, right.root)) return Verdict(*std::move(quantities));
  const bool unread = !left.plain.ok || !right.plain.ok;
  const bool digits = left_key.find_first_of("0123456789") != std::string::npos;
  if (unread && !left_key.empty() && left_key == right_key &&
      (!digits || Marks(left.cleaned) == Marks(right.cleaned))) {
    return {MathOutcome::kEqual, "text"};
  }
  if (auto counts = CompareCounts(tree, comparer, left, right)) return Verdict(*std::move(counts));
  if (!left.plain.ok || !right.plain.ok) {
    return {MathOutcome::kUndecided, "not read: " + (left.plain.ok ? right.plain.error : left.plain.error)};
  }
  if (left.root == kNoRef || right.root == kNoRef) return {MathOutcome::kUndecided, "budget: nodes"};
  Result result = comparer.Compare(left.root, right.root);
  if (result.outcome != MathOutcome::kEqual) result = OtherReadings(tree, comparer).Try(left, right, std::move(result));
  return Verdict(std::move(result));
}

}  // namespace
}  // namespace math

const char* NameOf(MathOutcome outcome) {
  switch (outcome) {
    case MathOutcome::kDifferent:
      return "different";
    case MathOutcome::kEqual:
      return "equal";
    case MathOutcome::kUndecided:
      return "undecided";
  }
  return "";
}

MathAnswer GradedAnswer(std::string_view gold, std::string_view output) {
  MathAnswer given = ExtractMathAnswer(output);
  const MathAnswer expected = ExtractMathAnswer(gold);
  if (math::BareChoice(given.text).has_value() || !math::BareChoice(expected.text).has_value()) {
    return math::Concluded(std::move(given), expected, output);
  }
  if (const auto letter = math::ChosenBy(output, given)) return {std::string(1, *letter), "choice"};
  return given;
}

MathVerdict JudgeMath(std::string_view gold, std::string_view answer, const MathBudget& budget) {
  // One order for both calls makes the verdict symmetric.
  const bool swapped = answer < gold;
  const std::string_view first = swapped ? answer : gold;
  const std::string_view second = swapped ? gold : answer;
  const MathAnswer left = ExtractMathAnswer(first);
  const MathAnswer right = ExtractMathAnswer(second);
  const MathAnswer a = math::Concluded(left, right, first);
  const MathAnswer b = math::Concluded(right, left, second);
  const auto left_choice = math::BareChoice(a.text);
  const auto right_choice = math::BareChoice(b.text);
  const std::string left_letters = math::ChoiceLetters(a.text);
  if (left_letters.size() > 1 && left_letters == math::ChoiceLetters(b.text)) return {MathOutcome::kEqual, "choice"};
  if (left_choice.has_value() || right_choice.has_value()) {
    const auto x = math::ChosenBy(first, a);
    const auto y = math::ChosenBy(second, b);
    if (x.has_value() && y.has_value()) return {*x == *y ? MathOutcome::kEqual : MathOutcome::kDifferent, "choice"};
  }
  if (!a.found() || !b.found()) {
    // Words that extraction does not know, of another script perhaps, are still themselves.
    const std::string_view whole = math::TrimSpaces(first);
    if (!whole.empty() && whole == math::TrimSpaces(second)) return {MathOutcome::kEqual, "same text"};
    return {MathOutcome::kDifferent, "no answer found"};
  }
  if (a.text == b.text) return {MathOutcome::kEqual, "same text"};
  return math::JudgeAnswers(a.text, b.text, budget);
}

}  // namespace iha::scoring
