#include "benchmarks/scoring/math/math_robust.h"

#include <array>

#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/parser.h"
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

Side Read(Tree& tree, Comparer& comparer, const std::string& answer) {
  Side side;
  side.cleaned = CleanAnswer(answer);
  const Ref form = ParseSpecialForm(tree, side.cleaned);
  side.special = form != kNoRef;
  if (side.special) {
    side.plain.ok = true;
    side.plain.root = form;
  } else {
    side.plain = ParseAnswer(tree, side.cleaned, Commas::kThousands);
  }
  side.root = side.plain.ok ? comparer.Rewrite(side.plain.root) : kNoRef;
  return side;
}

bool OneNumber(const Tree& tree, Ref ref) {
  const Kind kind = tree.kind(ref);
  return kind == Kind::kNumber || kind == Kind::kPercent || kind == Kind::kMul || kind == Kind::kPow ||
         kind == Kind::kAdd;
}

// The other readings of commas that the two forms allow (docs/grading.md, rule `commas`).
Result OtherReadings(Tree& tree, Comparer& comparer, const Side& a, const Side& b, Result first) {
  const auto bracketed = [&](Ref ref) {
    return Contains(tree, ref, Kind::kBracket) || Contains(tree, ref, Kind::kSet) || Contains(tree, ref, Kind::kList);
  };
  const auto again = [&](const Side& side, Commas commas) {
    const Parsed parsed = ParseAnswer(tree, side.cleaned, commas);
    return parsed.ok ? comparer.Rewrite(parsed.root) : kNoRef;
  };
  const std::array<std::pair<const Side*, const Side*>, 2> sides = {{{&a, &b}, {&b, &a}}};
  for (const auto& [side, other] : sides) {
    Ref reading = kNoRef;
    if (side->plain.thousands_commas && bracketed(other->root)) reading = again(*side, Commas::kSeparators);
    if (reading == kNoRef && side->plain.decimal_commas && OneNumber(tree, other->root))
      reading = again(*side, Commas::kDecimal);
    if (reading == kNoRef) continue;
    Result result = comparer.Compare(side == &a ? reading : a.root, side == &a ? b.root : reading);
    if (result.outcome == MathOutcome::kEqual) return Equal("commas: " + result.rule);
  }
  return first;
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
  // Words compare as words, whatever the other side could be read as. What can't be read compares mark by mark, since
  // "(1,2" is not "1.2".
  if ((left.special || right.special) && left_key == right_key && !left_key.empty()) {
    return {MathOutcome::kEqual, "text"};
  }
  const bool unread = !left.plain.ok || !right.plain.ok;
  const bool digits = left_key.find_first_of("0123456789") != std::string::npos;
  if (unread && !left_key.empty() && left_key == right_key &&
      (!digits || Marks(left.cleaned) == Marks(right.cleaned))) {
    return {MathOutcome::kEqual, "text"};
  }
  if (!left.plain.ok || !right.plain.ok) {
    return {MathOutcome::kUndecided, "not read: " + (left.plain.ok ? right.plain.error : left.plain.error)};
  }
  if (left.root == kNoRef || right.root == kNoRef) return {MathOutcome::kUndecided, "budget: nodes"};
  Result result = comparer.Compare(left.root, right.root);
  if (result.outcome != MathOutcome::kEqual) result = OtherReadings(tree, comparer, left, right, std::move(result));
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

MathVerdict JudgeMath(std::string_view gold, std::string_view answer, const MathBudget& budget) {
  // One order for both calls makes the verdict symmetric.
  const bool swapped = answer < gold;
  const std::string_view first = swapped ? answer : gold;
  const std::string_view second = swapped ? gold : answer;
  const MathAnswer a = ExtractMathAnswer(first);
  const MathAnswer b = ExtractMathAnswer(second);
  const auto left_choice = math::BareChoice(a.text);
  const auto right_choice = math::BareChoice(b.text);
  if (left_choice.has_value() || right_choice.has_value()) {
    const auto chosen = [](const std::optional<char>& bare, const MathAnswer& given, std::string_view text) {
      if (bare.has_value() || math::IsChoiceList(given.text)) return bare;
      if (const auto lower = math::LowerChoice(given.text)) return lower;
      return math::ExtractChoice(text);
    };
    const auto x = chosen(left_choice, a, first);
    const auto y = chosen(right_choice, b, second);
    if (x.has_value() && y.has_value() && *x == *y) return {MathOutcome::kEqual, "choice"};
    if (left_choice.has_value() && right_choice.has_value()) return {MathOutcome::kDifferent, "choice"};
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
