// What stands behind an answer and only explains it (extract_shape.h).
#include <algorithm>
#include <array>

#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLongestAside = 200;
constexpr size_t kLongestSentence = 600;

// What opens a remark in brackets at the end of a text.
constexpr std::array<string_view, 18> kAsides = {"since",  "because", "check",     "note",       "as ",      "where",
                                                 "which",  "verify",  "verifi",    "namely",     "assuming", "not ",
                                                 "reject", "discard", "we reject", "we discard", "exclud",   "ignor"};
// What says where a value is taken; whatever follows belongs to it.
constexpr std::array<string_view, 14> kAttained = {
    ", attained ",   " attained at",        " attained when", ", achieved ",      " achieved when",
    ", occurring ",  ", which is attained", ", which occurs", ", with equality ", ", obtained ",
    ", with slope ", ", with center ",      ", with radius ", ", with vertex "};
// What leads a reason, or what the answer is not, behind the answer.
constexpr std::array<string_view, 15> kTails = {", since ",      ", because ",   " because ",      " since ",
                                                ", as ",         ", not ",       ", followed by ", ", rather than ",
                                                " rather than ", " instead of ", ", whereas ",     ", but not ",
                                                " and not ",     ",不是",        "而不是"};
// What leads numbers of the question, where nothing more is stated behind; those of kBeforeNumber only in front of one.
constexpr std::array<string_view, 8> kWeakTails = {", namely ", ", which is ",   " when divided by ", " at $x",
                                                   " at x",     " at the point", " for all $",        " when $"};
constexpr std::array<string_view, 3> kBeforeNumber = {" between ", " out of the ", " of the "};
// Words of a clause that goes on to an answer.
constexpr std::array<string_view, 23> kGoesOn = {
    ", so ",    ", we ",     ", the ",   " then ",  "thus ",    "hence ",  "therefore ", ", it ",
    "answer",   ", this ",   ", there ", "we get ", "we have ", " gives ", " equals ",   " total of ",
    " leaves ", " meaning ", ", he ",    ", she ",  ", they ",  " so ",    " must be "};

bool StartsWithAny(string_view text, const auto& words) {
  return std::any_of(words.begin(), words.end(), [&](string_view word) { return text.starts_with(word); });
}

bool HoldsValue(string_view text) {
  return text.find('$') != kNone || std::any_of(text.begin(), text.end(), IsAsciiDigit);
}

// "4 such primes (2, 3, 5, 7)": as many numbers as the line in front of the brackets counts.
bool IsCounted(string_view before, string_view inside) {
  if (inside.empty() || inside.find_first_not_of("0123456789, ") != kNone) return false;
  const std::string count = std::to_string(1 + std::count(inside.begin(), inside.end(), ','));
  const std::string line = std::string(before.substr(before.rfind('\n') + 1)) + " ";
  const size_t at = line.rfind(" " + count + " ");
  return count != "1" && at != std::string::npos && line.find_first_of("0123456789", at + count.size() + 1) == kNone;
}

// "... = 6 (since x > 0)", "... [Check: 3 + 4 = 7]": without the brackets at the end.
string_view WithoutAside(string_view text) {
  const size_t end = text.find_last_not_of(" \n\t.$*");
  if (end == kNone || (text[end] != ')' && text[end] != ']')) return text;
  const char mark = text[end] == ')' ? '(' : '[';
  int depth = 0;
  for (size_t i = end + 1; i-- > 0 && end - i < kLongestAside;) {
    depth += text[i] == text[end] ? 1 : text[i] == mark ? -1 : 0;
    if (depth > 0) continue;
    const string_view inside = TrimSpaces(text.substr(i + 1, end - i - 1));
    const string_view before = text.substr(0, text.substr(0, i).find_last_not_of(" \n\t") + 1);
    const bool sentence = inside.ends_with('.') && inside[0] >= 'A' && inside[0] <= 'Z' && before.size() < i &&
                          (before.ends_with('.') || before.ends_with('}') || before.ends_with("\\]"));
    const bool opens =
        sentence || IsCounted(text.substr(0, i), inside) || StartsWithAny(LowerAscii(inside.substr(0, 12)), kAsides);
    return opens && HoldsValue(text.substr(0, i)) ? text.substr(0, i) : text;
  }
  return text;
}

bool GoesOn(string_view lower) {
  return std::any_of(kGoesOn.begin(), kGoesOn.end(), [&](string_view word) { return lower.find(word) != kNone; });
}

size_t AttainedTail(string_view lower) {
  size_t cut = kNone;
  for (const string_view tail : kAttained) cut = std::min(cut, lower.find(tail));
  // " when x = 2 and y = 4"
  for (size_t at = lower.find(" when "); at != kNone && at < cut; at = lower.find(" when ", at + 1)) {
    const string_view rest = lower.substr(at + 6);
    const size_t name = rest.starts_with('$') ? 1 : 0;
    const size_t equals = rest.find('=');
    const bool sets = equals != kNone && name < equals && IsAsciiLetter(rest[name]) &&
                      TrimSpaces(rest.substr(name + 1, equals - name - 1)).empty();
    if (sets) cut = at;
  }
  return cut != kNone && !GoesOn(lower.substr(cut + 1)) ? cut : kNone;
}

size_t WeakTail(string_view lower) {
  size_t cut = kNone;
  for (const string_view tail : kWeakTails) cut = std::min(cut, lower.find(tail));
  for (const string_view tail : kBeforeNumber) {
    for (size_t at = lower.find(tail); at != kNone; at = lower.find(tail, at + 1)) {
      const size_t number = std::min(lower.find_first_not_of('$', at + tail.size()), lower.size() - 1);
      if (IsAsciiDigit(lower[number])) cut = std::min(cut, at);
    }
  }
  return cut;
}

// Where a tail begins in a sentence in lower case; npos for none, or where its words go on to an answer: "because
// 800 - 600 = 200" is a calculation, unless what stands before has one.
size_t TailOf(string_view lower, bool weak) {
  size_t cut = weak ? WeakTail(lower) : kNone;
  if (!weak) {
    for (const string_view tail : kTails) cut = std::min(cut, lower.find(tail));
  }
  // "and since $x > 0$, $x = 4$"
  const bool leads_on =
      cut != kNone && (lower.substr(0, cut).ends_with("and") || lower.substr(0, cut).ends_with("but"));
  if (cut == kNone || leads_on) return kNone;
  const string_view behind = lower.substr(cut + 1);
  const auto says = [&](string_view word) { return behind.find(word) != kNone; };
  const bool condition = lower.substr(cut).starts_with(" at ") || lower.substr(cut).starts_with(" when $");
  const bool more = weak ? behind.find(" is ", 8) != kNone || says(" are ") || says(" was ") ||
                               (!condition && says("=")) || std::count(behind.begin(), behind.end(), '=') > 1
                         : says("=") && lower.substr(0, cut).find('=') == kNone;
  return GoesOn(behind) || more ? kNone : cut;
}

// Without the paragraphs at the end that only check: "**Verification**: 3^2 = 9".
string_view WithoutCheck(string_view text) {
  for (size_t line = text.rfind('\n'); line != kNone && line > 0; line = text.rfind('\n', line - 1)) {
    const size_t word = text.find_first_not_of(" *#[(_", line + 1);
    if (word == kNone) continue;
    const std::string lower = LowerAscii(text.substr(word, 8));
    const bool checks = lower.starts_with("verif") || lower.starts_with("check:") || lower.starts_with("check*");
    if (checks && HoldsValue(text.substr(0, line))) return text.substr(0, line);
    if (text.size() - line > 3 * kLongestAside) break;
  }
  return text;
}

// What leads a sentence that only remarks on the value in front of it.
constexpr std::array<string_view, 9> kNotes = {"Note that ",           "This is the smallest ", "This is the largest ",
                                               "This is the least ",   "This is the greatest ", "This is the only ",
                                               "This is the minimum ", "This is the maximum ",  "This is the first "};

// "... = 16. Note that it is attained at (1, 3, 3, 9)."
string_view WithoutNote(string_view text) {
  size_t note = 0;
  for (const string_view lead : kNotes) {
    const size_t at = text.rfind(lead);
    if (at != kNone && at > 0 && IsAsciiSpace(text[at - 1])) note = std::max(note, at);
  }
  if (note == 0 || text.size() - note > kLongestSentence || text.find(':', note) != kNone) return text;
  const string_view before = TrimSpaces(text.substr(0, note));
  string_view line = before.substr(before.rfind('\n') + 1);
  if (line == "\\]" || line == "$$") line = before;
  return HoldsValue(line) && !GoesOn(LowerAscii(text.substr(note))) ? text.substr(0, note) : text;
}

string_view Until(string_view text, string_view mark) { return text.substr(0, text.find(mark)); }

}  // namespace

std::string WithoutCalculator(string_view text) {
  std::string out;
  size_t kept = 0;
  for (size_t open = text.find("<<"); open != kNone; open = text.find("<<", open + 2)) {
    const string_view inside = Until(text.substr(open + 2, kLongestAside), ">>");
    const size_t close = open + 2 + inside.size();
    const bool calculation = text.substr(close).starts_with(">>") && inside.find('=') != kNone &&
                             inside.find_first_of("<>\n") == kNone && open >= kept;
    if (!calculation) continue;
    out += text.substr(kept, open - kept);
    kept = close + 2;
  }
  out += text.substr(kept);
  return out;
}

string_view WithoutProofEnd(string_view text) {
  for (bool again = true; again;) {
    again = false;
    const string_view trimmed = TrimSpaces(text);
    for (const string_view mark : {"$\\blacksquare$", "$\\square$", "$\\Box$", "\\blacksquare", "\\qed", "$\\qed$",
                                   "QED", "Q.E.D.", "Q.E.D", "\u25a0", "\u220e", "\u25a1"}) {
      if (!trimmed.ends_with(mark)) continue;
      const string_view before = TrimSpaces(trimmed.substr(0, trimmed.size() - mark.size()));
      const bool letters = IsAsciiLetter(mark[0]) && !before.empty() && IsAsciiLetter(before.back());
      if (before.empty() || letters) continue;
      text = before;
      again = true;
      break;
    }
  }
  return text;
}

string_view WithoutAfterthought(string_view text) {
  text = WithoutAside(WithoutNote(WithoutCheck(text)));
  const string_view trimmed = text.substr(0, text.find_last_not_of(" \n\t.!*") + 1);
  size_t begin = 0;
  for (const string_view stop : {"\n", ". ", "? ", "! "}) {
    const size_t at = trimmed.rfind(stop);
    if (at != kNone) begin = std::max(begin, at + stop.size());
  }
  const string_view sentence = trimmed.substr(begin);
  if (sentence.size() > kLongestSentence) return text;
  const std::string lower = LowerAscii(sentence);
  for (const string_view lead : {"since ", "because ", "as ", "if ", "when "}) {
    if (lower.starts_with(lead)) return text;
  }
  for (const size_t cut : {AttainedTail(lower), TailOf(lower, false), TailOf(lower, true)}) {
    if (cut == kNone) continue;
    const string_view before = sentence.substr(0, cut);
    const bool inside = std::count(before.begin(), before.end(), '$') % 2 == 1;
    if (!inside && HoldsValue(before)) return text.substr(0, begin + cut);
  }
  return text;
}

string_view ChineseFractionIn(string_view text) {
  constexpr string_view kMarks = "零一二三四五六七八九十百千";
  const auto counts = [&](string_view mark) { return kMarks.find(mark) % 3 == 0 && kMarks.find(mark) != kNone; };
  const size_t of = text.rfind("分之");
  if (of == kNone) return "";
  size_t begin = of;
  while (begin >= 3 && counts(text.substr(begin - 3, 3))) begin -= 3;
  if (begin >= 3 && text.substr(begin - 3, 3) == "负") begin -= 3;
  size_t end = of + 6;
  while (end + 3 <= text.size() && counts(text.substr(end, 3))) end += 3;
  return begin < of && end > of + 6 ? text.substr(begin, end - begin) : string_view();
}

}  // namespace iha::scoring::math
