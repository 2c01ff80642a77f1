// ExtractMathAnswer (math_robust.h): the steps are in docs/grading.md, "Extraction".
#include <algorithm>
#include <array>
#include <vector>

#include "benchmarks/scoring/extract_robust.h"
#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/math_robust.h"
#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring {
namespace math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kWindow = 20000;  // what is searched for phrases and last expressions: the end of the text
constexpr size_t kSentence = 600;
constexpr size_t kLongestSegment = 2000;
constexpr size_t kLongestName = 16;  // of an environment
constexpr int kMaxBoxes = 40;
constexpr int kMaxPhrases = 20;
constexpr size_t kMaxWholeWords = 6;
constexpr size_t kMaxWordBytes = 24;
constexpr size_t kStatedSolution = 80;

string_view Strip(string_view text) {
  const auto junk = [](char c) { return IsAsciiSpace(c) || c == '*' || c == '"' || c == '`'; };
  while (!text.empty() && (junk(text.front()) || text.front() == ':' || text.front() == '}' || text.front() == '.') &&
         !(text.front() == '.' && text.size() > 1 && IsAsciiDigit(text[1]))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && junk(text.back())) text.remove_suffix(1);
  return text;
}

// The last box whose braces balance without the escaped ones, else with them.
std::optional<Boxed> LastBox(string_view text, size_t limit) {
  const auto box = LastBoxed(text, limit, true);
  return box.has_value() ? box : LastBoxed(text, limit);
}

struct Boxes {
  std::string answer;
  size_t end = 0;  // behind the last box
};

// Boxes around nothing are none.
std::optional<Boxes> LastBoxes(string_view text) {
  auto box = LastBox(text, text.size());
  for (int i = 0; i < kMaxBoxes && box.has_value() && SaysNothing(box->content); ++i) box = LastBox(text, box->begin);
  if (!box.has_value() || SaysNothing(box->content)) return std::nullopt;
  const auto end_of = [&](const Boxed& b) {
    return static_cast<size_t>(b.content.data() - text.data()) + b.content.size() + 1;
  };
  Boxes out;
  out.end = end_of(*box);
  std::vector<string_view> parts = {box->content};
  for (int i = 0; i < kMaxBoxes; ++i) {
    const auto before = LastBox(text, box->begin);
    if (!before.has_value() || end_of(*before) > box->begin) break;
    if (!OnlyJoins(text.substr(end_of(*before), box->begin - end_of(*before)))) break;
    const bool again = std::find(parts.begin(), parts.end(), before->content) != parts.end();
    if (!again && !SaysNothing(before->content)) parts.push_back(before->content);
    box = before;
  }
  for (size_t i = parts.size(); i-- > 0;) {
    out.answer += TrimSpaces(parts[i]);
    if (i > 0) out.answer += ", ";
  }
  return out;
}

struct Segment {
  size_t begin = 0;  // delimiters included
  size_t end = 0;
};

// What closes the mathematics that `text` opens with; "" where it opens none. `open`: the bytes that open it.
std::string CloseOf(string_view text, size_t& open) {
  for (const auto& [opens, closes] : std::initializer_list<std::pair<string_view, string_view>>{
           {"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}}) {
    open = opens.size();
    if (text.starts_with(opens)) return std::string(closes);
  }
  constexpr string_view kBegin = "\\begin{";
  if (!text.starts_with(kBegin)) return "";
  const string_view name = text.substr(kBegin.size(), text.substr(kBegin.size(), kLongestName).find('}'));
  open = kBegin.size() + name.size() + 1;
  return IsRows(name) ? "\\end{" + std::string(name) + "}" : "";
}

// The mathematics between delimiters. A "$" that encloses prose is a currency sign.
std::vector<Segment> MathSegments(string_view text) {
  std::vector<Segment> out;
  for (size_t i = 0; i < text.size();) {
    size_t open = 0;
    const std::string close = text[i] == '$' || text[i] == '\\' ? CloseOf(text.substr(i), open) : "";
    if (close.empty()) {
      i += text[i] == '\\' ? 2 : 1;
      continue;
    }
    size_t end = text.find(close, i + open);
    while (end != kNone && close == "$" && end > 0 && text[end - 1] == '\\') end = text.find(close, end + 1);
    const size_t length = end == kNone ? 0 : end - i - open;
    const string_view inside = text.substr(i + open, length);
    if (length == 0 || length > kLongestSegment || ShapeOf(inside).prose > 2 || SaysNothing(inside)) {
      i += open;
      continue;
    }
    out.push_back({i, end + close.size()});
    i = end + close.size();
  }
  return out;
}

// A lone name ("x", "f(x)", "ABC") states nothing.
bool IsLoneName(string_view segment) {
  std::string plain;
  for (const char c : segment) {
    if (string_view("$\\()[] {},.").find(c) == kNone) plain += c;  // "(a, b)" too
  }
  const bool constant = plain == "pi" || plain == "infty" || plain == "emptyset";
  return plain.size() <= 4 && !constant && std::all_of(plain.begin(), plain.end(), IsAsciiLetter);
}

// Whether a number only says again, in decimals, what stands before it in its sentence: "which is about 0.167".
bool SaysAgain(string_view text, size_t number, size_t value_end) {
  const string_view between = text.substr(value_end, number - value_end);
  if (between.size() > 60 || between.find(". ") != kNone || between.find('\n') != kNone) return false;
  const std::string lower = LowerAscii(between);
  return lower.find("about ") != kNone || lower.find("approx") != kNone || lower.find("roughly ") != kNone ||
         lower.find("\u2248") != kNone;
}

// The last plain mathematics outside of `segments`.
std::optional<Phrase> PlainOutside(string_view text, const std::vector<Segment>& segments) {
  size_t limit = text.size();
  for (size_t i = segments.size() + 1; i-- > 0;) {
    const size_t from = i > 0 ? segments[i - 1].end : 0;
    if (const auto plain = LastPlain(text, from, limit)) return plain;
    limit = i > 0 ? segments[i - 1].begin : 0;
  }
  return std::nullopt;
}

std::string LastExpression(string_view text) {
  if (text.size() > kWindow) text.remove_prefix(text.size() - kWindow);
  const std::vector<Segment> segments = MathSegments(text);
  std::optional<Phrase> number = PlainOutside(text, segments);
  size_t last = segments.size();
  for (size_t i = segments.size(); i-- > 0;) {
    if (!IsLoneName(text.substr(segments[i].begin, segments[i].end - segments[i].begin))) {
      last = i;
      break;
    }
  }
  const bool again = last < segments.size() && number.has_value() && number->begin > segments[last].end &&
                     SaysAgain(text, number->begin, segments[last].end);
  if (again) number.reset();
  // "$2\sqrt{3}$, which is approximately $3.464$"
  const auto decimal = [&](const Segment& s) {
    return text.substr(s.begin, s.end - s.begin).find_first_not_of("$\\() .-0123456789") == kNone;
  };
  while (last < segments.size() && last > 0 && decimal(segments[last]) &&
         SaysAgain(text, segments[last].begin, segments[last - 1].end)) {
    --last;
  }
  const size_t value_end =
      std::max(number.has_value() ? number->end : 0, last < segments.size() ? segments[last].end : 0);
  if (const string_view quantity = QuantityUpTo(text, value_end); !quantity.empty() && !again) {
    return std::string(quantity);
  }
  // "cannot be $0$, $x=5$" and "$k-1=1,$ and $k=2$" are no lists.
  const auto lists = [&](const Segment& a, const Segment& b) {
    const Equation left = EquationOf(text.substr(a.begin, a.end - a.begin));
    const Equation right = EquationOf(text.substr(b.begin, b.end - b.begin));
    return left != Equation::kOther && right != Equation::kOther &&
           !(left == Equation::kNone && right == Equation::kNamed);
  };
  const bool use_segment = last < segments.size() && (!number.has_value() || number->begin < segments[last].begin);
  if (use_segment) {
    size_t first = last;
    while (first > 0 &&
           OnlyJoins(text.substr(segments[first - 1].end, segments[first].begin - segments[first - 1].end)) &&
           segments[first].begin > segments[first - 1].end + 1 && lists(segments[first - 1], segments[first])) {
      --first;
    }
    if (GivesReason(text.substr(0, segments[first].begin))) first = last;
    return InOneLine(text.substr(segments[first].begin, segments[last].end - segments[first].begin));
  }
  if (number.has_value()) {
    return std::string(text.substr(number->begin, number->end - number->begin));
  }
  if (!segments.empty()) {
    const Segment& only = segments.back();
    return std::string(text.substr(only.begin, only.end - only.begin));
  }
  return "";
}

// "a circle"; "A because ..." is a letter.
bool IsArticle(string_view word, string_view behind) {
  if ((word != "a" && word != "A") || behind.size() < 3 || !IsAsciiLetter(behind[1]) || !IsAsciiLetter(behind[2])) {
    return false;
  }
  for (const string_view reason : {" because", " since", " as ", " and ", " or ", " is ", " for "}) {
    if (behind.starts_with(reason)) return false;
  }
  return true;
}

// The words at the start of `text` that can belong to a formula.
string_view LeadingExpression(string_view text) {
  size_t end = 0;
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    while (i < text.size() && IsAsciiSpace(text[i])) ++i;
    size_t stop = i;
    while (stop < text.size() && !IsAsciiSpace(text[stop])) ++stop;
    const string_view word = text.substr(i, stop - i);
    const Shape shape = ShapeOf(word);
    if (word.empty() || shape.prose > 0 || IsArticle(word, text.substr(stop))) break;
    const bool joins = IsConnective(LowerAscii(word));
    if (!joins) {
      end = stop;
      any = any || shape.digits || shape.formula || word.size() == 1;
    }
    i = stop;
    if (word.back() == '.' && !joins) break;
  }
  return any ? TrimSpaces(text.substr(0, end)) : string_view();
}

// The sentence at the start of `text`: up to a point in front of a blank, a line's end, or a closing phrase.
string_view Sentence(string_view text) {
  text = text.substr(0, kSentence);
  size_t end = std::min(text.find('\n'), text.find(" I hope"));
  for (const string_view stop : {". ", ".\n", "。", "? ", "! "}) end = std::min(end, text.find(stop));
  text = text.substr(0, std::min(end, text.size()));
  for (const string_view denial : {",不是", ",而不是", "而不是"}) text = text.substr(0, text.find(denial));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

// The number that stands beside a currency sign.
std::string CurrencyNumber(string_view sentence) {
  for (const string_view sign : {" $", " \u20ac", " \u00a3", "\u20ac"}) {
    const size_t at = sentence.find(sign);
    if (at == kNone || at == 0 || !IsAsciiDigit(sentence[at - 1])) continue;
    if (const auto number = LastPlainNumber(sentence, at)) {
      if (number->end == at) return std::string(sentence.substr(number->begin, number->end - number->begin));
    }
  }
  return "";
}

// "12!" at the end of a sentence is no factorial.
string_view WithoutExclamation(string_view sentence) {
  while (sentence.size() > 1 && sentence.ends_with('!')) sentence.remove_suffix(1);
  return sentence;
}

// What is stated behind "the answer is".
std::string FromStatement(string_view text) {
  const string_view stated = Strip(text.substr(0, 4 * kSentence));
  const bool below = text.substr(0, static_cast<size_t>(stated.data() - text.data())).find('\n') != kNone;
  text = stated;
  if (std::string listed = ListedBelow(text); !listed.empty()) return listed;
  if (below && text.starts_with("- ")) text.remove_prefix(2);  // a list of one
  if (const string_view quantity = LeadingQuantity(Sentence(text)); !quantity.empty()) return std::string(quantity);
  const std::vector<Segment> segments = MathSegments(text);
  if (!segments.empty() && segments[0].begin == 0) {
    size_t last = 0;
    while (last + 1 < segments.size() && segments[last + 1].begin > segments[last].end &&
           OnlyJoins(text.substr(segments[last].end, segments[last + 1].begin - segments[last].end)) &&
           text.substr(segments[last].end, segments[last + 1].begin - segments[last].end).find(". ") == kNone &&
           text.substr(segments[last].end, segments[last + 1].begin - segments[last].end).find("\n\n") == kNone) {
      ++last;
    }
    return InOneLine(text.substr(0, segments[last].end));
  }
  const string_view sentence = WithoutExclamation(Strip(Sentence(text)));
  if (sentence.empty()) return "";
  const Shape shape = ShapeOf(sentence);
  if (IsRemark(sentence)) {
    const size_t but = IsNegated(sentence) ? sentence.find(" but ") : kNone;  // "not 15 but 12"
    return but == kNone ? "" : FromStatement(sentence.substr(but + 5));
  }
  if (shape.prose == 0) return std::string(sentence);
  if (const string_view word = YesOrNo(sentence); !word.empty()) return std::string(word);
  if (const string_view ratio = LeadingRatio(sentence); !ratio.empty()) return std::string(ratio);
  if (const string_view leading = Strip(LeadingExpression(sentence)); !leading.empty()) return std::string(leading);
  for (const string_view verb : {" is ", " are ", " = ", " equals "}) {
    const size_t at = sentence.rfind(verb);
    if (at == kNone) continue;
    const string_view rest = Strip(sentence.substr(at + verb.size()));
    if (const string_view leading = LeadingExpression(rest); !leading.empty()) return std::string(leading);
  }
  if (std::string currency = CurrencyNumber(sentence); !currency.empty()) return currency;
  if (std::string expression = LastExpression(sentence); !expression.empty()) return expression;
  if (const string_view said = SaidOf(sentence); !said.empty()) return std::string(said);
  if (shape.words <= kMaxWholeWords) return std::string(sentence);
  return "";
}

// Special tokens of chat templates end the text.
string_view CutSpecialTokens(string_view text) {
  for (const string_view token : {"<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end|>", "</s>"}) {
    const size_t at = text.rfind(token);
    if (at != kNone && at > 0 && text.size() - at < 40) text = text.substr(0, at);
  }
  return text;
}

}  // namespace

std::optional<Phrase> LastPhrase(string_view lower, bool strong, size_t from, size_t before) {
  const auto phrases = strong ? StrongPhrases() : AnswerPhrases();
  std::array<std::vector<string_view>, 256> by_byte;
  for (const string_view phrase : phrases) by_byte[static_cast<unsigned char>(phrase[0])].push_back(phrase);
  // "answer is" is no part of "answer isn't".
  const auto ends = [&](size_t end) {
    return end >= lower.size() || !IsAsciiLetter(lower[end - 1]) || !IsAsciiLetter(lower[end]);
  };
  for (size_t pos = std::min(before, lower.size()); pos-- > from;) {
    size_t longest = 0;
    for (const string_view phrase : by_byte[static_cast<unsigned char>(lower[pos])]) {
      if (lower.substr(pos).starts_with(phrase) && ends(pos + phrase.size())) {
        longest = std::max(longest, phrase.size());
      }
    }
    if (longest > 0 && (pos == 0 || !IsAsciiLetter(lower[pos - 1]))) return Phrase{pos, pos + longest};
  }
  return std::nullopt;
}

bool IsWholeAnswer(string_view text) {
  text = TrimSpaces(text);
  // "$ ... $" around all of it says nothing.
  const bool enclosed = text.size() > 2 && text.front() == '$' && text.find('$', 1) == text.size() - 1;
  if (enclosed) text = TrimSpaces(text.substr(1, text.size() - 2));
  if (text.empty()) return false;
  // Steps below each other are no answer, if no mathematics holds them together.
  if (text.find('\n') != kNone && text.find_first_of("$\\{") == kNone) return false;
  const Shape shape = ShapeOf(text);
  if (shape.prose == 0 || (IsDateLike(text) && shape.words <= 4)) return true;
  if (const std::string lower = LowerAscii(text.substr(0, 16));
      shape.words <= kMaxWholeWords &&
      (lower.starts_with("square root of ") || lower.starts_with("cube root of ") || lower.starts_with("all real") ||
       lower.starts_with("the square root") || NumbersJoined(text))) {
    return true;
  }
  if (text.find_first_of(" \n\t") == kNone) {
    // A word of another script, but no sentence that is written without blanks.
    const bool word = text.size() <= kMaxWordBytes && !shape.digits && !shape.formula;
    return static_cast<unsigned char>(text[0]) < 0x80 || word;
  }
  if (text.find('\n') != kNone || shape.words > kMaxWholeWords) return false;
  if (!shape.digits && !shape.formula) return true;
  // "odd $n$": words and a lone name.
  const std::vector<Segment> segments = MathSegments(text);
  return !shape.digits && !segments.empty() && std::all_of(segments.begin(), segments.end(), [&](const Segment& s) {
    return IsLoneName(text.substr(s.begin, s.end - s.begin));
  });
}

}  // namespace math

namespace math {
namespace {

// "Here's the solution:" in front of its steps states nothing.
bool OpensSolution(string_view lower, size_t behind) {
  return lower.substr(0, behind).ends_with("solution:") && lower.size() - behind > kStatedSolution;
}

// What stands in front of "is the answer", "is our final answer" in its sentence.
std::string StatedBefore(string_view text, string_view lower) {
  const size_t offset = text.size() - lower.size();
  size_t is = kNone;
  for (const string_view phrase :
       {" is the answer", " is the final answer", " is the correct answer", " is the required answer", " is our answer",
        " is our final answer", " is the desired answer", " is therefore the answer"}) {
    const size_t at = lower.rfind(phrase);
    if (at != kNone && (is == kNone || at > is)) is = at;
  }
  if (is == kNone) return "";
  const string_view before = text.substr(0, offset + is);
  if (LowerAscii(before.substr(before.size() - std::min<size_t>(before.size(), 4))).ends_with("what")) return "";
  size_t begin = before.rfind('\n') + 1;
  for (const string_view stop : {". ", "? ", "! ", "\u3002"}) {
    const size_t at = before.rfind(stop);
    if (at != kNone) begin = std::max(begin, at + stop.size());
  }
  return LastExpression(before.substr(begin));
}

// What stands behind the last phrase at or behind `from` that says something. `lower` is the end of `text`.
std::string Stated(string_view text, string_view lower, bool strong, size_t from) {
  const size_t offset = text.size() - lower.size();
  std::optional<Phrase> phrase = LastPhrase(lower, strong, from, lower.size());
  for (int i = 0; i < kMaxPhrases && phrase.has_value(); ++i) {
    std::string answer = FromStatement(text.substr(offset + phrase->end));
    if (!SaysNothing(answer) && !OpensSolution(lower, phrase->end)) return answer;
    phrase = LastPhrase(lower, strong, from, phrase->begin);
  }
  return "";
}

MathAnswer ExtractFrom(string_view raw) {
  const Emphasis emphasis = WithoutBold(raw);
  const string_view text = emphasis.text;
  const size_t offset = text.size() > kWindow ? text.size() - kWindow : 0;
  const auto boxes = LastBoxes(text);
  const std::string lower = LowerLetters(text.substr(offset));
  const size_t from = boxes.has_value() && boxes->end > offset ? boxes->end - offset : 0;
  if (std::string answer = Stated(text, lower, true, from); !answer.empty()) {
    const bool box = answer.find("\\boxed{") != kNone;  // one that is not closed
    if (boxes.has_value() ? StatesValue(answer) : !box) return {std::move(answer), "final answer"};
  }
  if (boxes.has_value()) return {boxes->answer, "boxed"};
  const size_t unclosed = text.rfind("\\boxed{");
  if (unclosed != kNone) {
    const string_view rest = TrimSpaces(text.substr(unclosed + 7).substr(0, text.substr(unclosed + 7).find('\n')));
    if (!SaysNothing(rest) && !rest.starts_with('}')) return {std::string(rest), "unclosed box"};
  }
  if (std::string answer = Stated(text, lower, false, 0); !answer.empty()) return {std::move(answer), "answer is"};
  if (std::string answer = StatedBefore(text, lower); !answer.empty()) return {std::move(answer), "answer is"};
  const string_view plain = WithoutLead(WithoutMarkdown(text));
  if (const string_view said = SaidLast(plain); !said.empty()) return {std::string(said), "last sentence"};
  const string_view bold = SaidInBold(emphasis);
  if (!bold.empty() && bold.size() < plain.size() && !ShapeOf(bold).digits) {
    const std::string value = LastExpression(bold);
    return {value.empty() ? std::string(bold) : value, "last sentence"};
  }
  if (IsWholeAnswer(plain) && !SaysNothing(plain)) {
    if (const string_view word = YesOrNo(plain); !word.empty()) return {std::string(word), "whole text"};
    if (const string_view said = SaidOf(plain); !said.empty()) return {std::string(said), "whole text"};
    if (const string_view part = ChineseFractionIn(plain); !part.empty()) return {std::string(part), "whole text"};
    return {std::string(TrimSpaces(plain)), "whole text"};
  }
  const bool sentence = plain.find('\n') == kNone && plain.find(". ") == kNone;
  if (const string_view word = YesOrNo(plain); sentence && !word.empty()) return {std::string(word), "last sentence"};
  if (std::string value = LastExpression(bold); !value.empty()) return {std::move(value), "last expression"};
  std::string last = LastExpression(WithoutAfterthought(WithoutDenials(WithoutDrawings(text))));
  if (SaysNothing(last)) last = ChineseFractionIn(text);
  if (SaysNothing(last)) last = LastCountInWords(text);
  if (!SaysNothing(last)) return {std::move(last), "last expression"};
  return {"", "none"};
}

}  // namespace
}  // namespace math

MathAnswer ExtractMathAnswer(std::string_view whole) {
  const std::string plain = math::WithCorrections(math::WithoutCalculator(math::WithAsciiForms(whole)));
  const std::string_view text = math::WithoutProofEnd(math::CutSpecialTokens(plain));
  if (const std::string_view tagged = math::AnswerTag(text); !tagged.empty()) {
    MathAnswer answer = math::ExtractFrom(tagged);
    if (answer.found()) return {std::move(answer.text), "answer tag"};
    if (math::SaysNothing(tagged)) return math::ExtractFrom(text.substr(0, text.rfind("<answer>")));
  }
  return math::ExtractFrom(text);
}

}  // namespace iha::scoring
