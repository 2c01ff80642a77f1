// Multiple choice letters (docs/grading.md, rule `choice`).
#include <algorithm>
#include <functional>

#include "benchmarks/scoring/extract_robust.h"
#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/words.h"
#include "common/text.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kChoiceWindow = 4000;

bool IsChoiceLetter(char c) { return c >= 'A' && c <= 'J'; }

// A capital A to J that stands alone at `pos`: no letter or digit beside it. "A" in front of a word is the article.
bool StandsAlone(string_view text, size_t pos) {
  const auto joined = [](char c) { return IsAsciiLetter(c) || IsAsciiDigit(c) || c == '\'' || c == '_' || c == '^'; };
  if (!IsChoiceLetter(text[pos]) || (pos > 0 && (joined(text[pos - 1]) || text[pos - 1] == '\\'))) return false;
  // "B'dir": a suffix.
  const bool suffix = text.substr(pos + 1).starts_with("'d") || text.substr(pos + 1).starts_with("'t");
  if (pos + 1 < text.size() && joined(text[pos + 1]) && !suffix) return false;
  if (const string_view behind = text.substr(pos + 1); behind.starts_with("}_") || behind.starts_with("}^"))
    return false;
  const bool word_behind =
      pos + 2 < text.size() && text[pos + 1] == ' ' && text[pos + 2] >= 'a' && text[pos + 2] <= 'z';
  const string_view behind = text.substr(std::min(pos + 2, text.size()));
  const bool goes_on = behind.starts_with("is") || behind.starts_with("non") || behind.starts_with("or") ||
                       behind.starts_with("and") || behind.starts_with("because") || behind.starts_with("since") ||
                       behind.starts_with("not") || behind.starts_with("nicht") || behind.starts_with("et") ||
                       behind.starts_with("et ") || behind.starts_with("as ");
  // "I choose C": the pronoun.
  return !((text[pos] == 'A' || text[pos] == 'I') && word_behind && !goes_on);
}

// "B is wrong", "(B) can't be", "not B", "eliminate B".
bool IsRejected(string_view text, size_t pos) {
  size_t end = pos + 1;
  while (end < text.size() && string_view(")*.}").find(text[end]) != string_view::npos) ++end;
  // "A and C are wrong": what is said behind the last letter of several is said of all.
  for (bool again = true; again;) {
    again = false;
    for (const string_view join : {", and ", ", or ", " and ", " or ", " nor ", ", "}) {
      const size_t letter = end + join.size();
      const bool more = text.substr(end).starts_with(join) && letter < text.size() && IsChoiceLetter(text[letter]) &&
                        (letter + 1 >= text.size() || !IsAsciiLetter(text[letter + 1]));
      if (!more) continue;
      end = letter + 1;
      again = true;
      break;
    }
  }
  const std::string behind = LowerAscii(text.substr(end, 40));
  for (const string_view verb :
       {" is wrong",      " is incorrect",  " is not ",       " is false",   " isn't ",  " is ruled out",
        " is eliminated", " is impossible", " is out",        " is invalid", " is too ", " can't ",
        " cannot ",       " can not ",      " does not ",     " doesn't ",   " fail",    " are wrong",
        " are incorrect", " are not ",      " are ruled out", " was wrong"}) {
    if (behind.starts_with(verb)) return true;
  }
  size_t begin = pos;
  while (begin > 0 && string_view("(*{").find(text[begin - 1]) != string_view::npos) --begin;
  const size_t from = begin > 24 ? begin - 24 : 0;
  const std::string lower = LowerAscii(text.substr(from, begin - from));
  string_view before = lower;
  for (const string_view noun : {"option ", "choice ", "answer ", "letter "}) {
    if (before.ends_with(noun)) before.remove_suffix(noun.size());
  }
  for (const string_view verb :
       {"not ", "n't ", "n't be ", "cannot be ", "eliminate ", "eliminates ", "rule out ", "rules out ", "reject ",
        "rejects ", "exclude ", "excludes ", "unlike ", "neither ", "nor "}) {
    if (before.ends_with(verb)) return true;
  }
  return false;
}

bool Chooses(string_view text, size_t pos) { return StandsAlone(text, pos) && !IsRejected(text, pos); }

std::optional<char> FirstAlone(string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (Chooses(text, i)) return text[i];
  }
  return std::nullopt;
}

// Letters of other alphabets in the order of A, B, C, D.
std::optional<char> NativeLetter(string_view text) {
  static constexpr string_view kAlphabets[][4] = {
      {"أ", "ب", "ج", "د"},     {"А", "Б", "В", "Г"}, {"अ", "ब", "स", "द"},    {"ए", "बी", "सी", "डी"},
      {"क", "ख", "ग", "घ"},     {"ক", "খ", "গ", "ঘ"}, {"ก", "ข", "ค", "ง"},    {"Α", "Β", "Γ", "Δ"},
      {"가", "나", "다", "라"}, {"א", "ב", "ג", "ד"}, {"ア", "イ", "ウ", "エ"}};
  for (const auto& alphabet : kAlphabets) {
    for (size_t i = 0; i < 4; ++i) {
      if (text == alphabet[i]) return static_cast<char>('A' + i);
    }
  }
  return std::nullopt;
}

// The answer without what only formats it.
std::string PlainChoiceText(string_view answer) {
  std::string plain;
  bool escaped = false;
  for (const char c : CleanAnswer(answer.substr(0, 400))) {
    if (c == '{' || c == '}' || c == '*') continue;
    plain += c;
    escaped = escaped || c == '\\';
  }
  for (const string_view command :
       {"\\textbf", "\\text", "\\mathrm", "\\mathbf", "\\left", "\\right", "\\ ", "\\quad", "\\mbox"}) {
    for (size_t at = plain.find(command); escaped && at != std::string::npos; at = plain.find(command, at)) {
      plain.erase(at, command.size());
    }
  }
  return plain;
}

// "Option B", "The correct choice is (D)": what stands behind such words.
string_view BehindChoiceWords(string_view text) {
  while (true) {
    size_t end = 0;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    const std::string word = LowerAscii(text.substr(0, end));
    const bool says = word == "option" || word == "choice" || word == "answer" || word == "letter" || word == "the" ||
                      word == "correct" || word == "right" || word == "is";
    if (!says || end == text.size()) return text;
    text.remove_prefix(end);
    while (!text.empty() && (IsAsciiSpace(text.front()) || text.front() == ':')) text.remove_prefix(1);
  }
}

// "A, C", "(A) and (C)": different letters, and what joins them.
bool ListsChoices(string_view text) {
  std::string letters;
  size_t joins = 0;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    const string_view run = text.substr(i, end - i);
    if (run.size() == 1 && IsChoiceLetter(run[0])) {
      if (letters.find(run[0]) == std::string::npos) letters += run[0];
    } else if (run == "and" || run == "or" || (run.empty() && string_view(",;&").find(text[i]) != string_view::npos)) {
      ++joins;
    } else if (!run.empty() || string_view(" ().").find(text[i]) == string_view::npos) {
      return false;
    }
    i = std::max(end, i + 1);
  }
  return letters.size() > 1 && joins + 1 >= letters.size();
}

}  // namespace

std::string ChoiceLetters(string_view answer) {
  if (answer.size() > 60) return "";
  const std::string plain = PlainChoiceText(answer);
  const string_view text = TrimSpaces(plain);
  const bool run = text.size() > 1 && text.size() < 6 && std::all_of(text.begin(), text.end(), IsChoiceLetter) &&
                   std::adjacent_find(text.begin(), text.end(), std::greater_equal<>()) == text.end();
  if (!run && !ListsChoices(text)) return "";
  std::string letters;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool lone = (i == 0 || !IsAsciiLetter(text[i - 1])) && (i + 1 == text.size() || !IsAsciiLetter(text[i + 1]));
    if (IsChoiceLetter(text[i]) && (run || lone) && letters.find(text[i]) == std::string::npos) letters += text[i];
  }
  std::sort(letters.begin(), letters.end());
  return letters;
}

bool IsChoiceList(string_view answer) { return ListsChoices(TrimSpaces(PlainChoiceText(answer))); }

std::optional<char> LowerChoice(string_view answer) {
  const std::string plain = PlainChoiceText(answer);
  const string_view text = TrimSpaces(plain);
  const bool letter = text.size() == 3 && text[0] == '(' && text[2] == ')' && text[1] >= 'a' && text[1] <= 'j';
  return letter ? std::optional(static_cast<char>(text[1] - 'a' + 'A')) : std::nullopt;
}

std::optional<char> BareChoice(string_view answer) {
  const std::string plain = PlainChoiceText(answer);
  string_view text = BehindChoiceWords(TrimSpaces(plain));
  if (ListsChoices(text)) return std::nullopt;
  while (!text.empty() && (text.back() == '.' || text.back() == ','))
    text = TrimSpaces(text.substr(0, text.size() - 1));
  const bool parenthesised = text.size() >= 3 && text[0] == '(' && text[2] == ')' && IsChoiceLetter(text[1]);
  if (parenthesised) return IsRejected(text, 1) ? std::nullopt : std::optional(text[1]);
  if (text.size() == 1 && IsChoiceLetter(text[0])) return text[0];
  if (text.size() >= 2 && IsChoiceLetter(text[0]) &&
      (text[1] == ')' || (text.size() > 3 && text[1] == ':' && text[2] == ' ' && !IsChoiceLetter(text[3])) ||
       (text.size() > 2 && text[1] == '.' && text[2] == ' ')))
    return text[0];
  return NativeLetter(text);
}

namespace {

// The last letter that the text says it chooses ("I choose C", "B is correct").
std::optional<char> StatedChoice(string_view text) {
  std::optional<char> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!Chooses(text, i)) continue;
    size_t begin = i;
    while (begin > 0 && string_view("(*{").find(text[begin - 1]) != string_view::npos) --begin;
    const std::string before = LowerAscii(text.substr(begin > 20 ? begin - 20 : 0, std::min<size_t>(begin, 20)));
    for (const string_view verb : {"i choose ", "we choose ", "i pick ", "we pick ", "i select ", "go with ",
                                   "must be ", "i chose ", "选", "选择"}) {
      if (before.ends_with(verb)) out = text[i];
    }
    size_t end = i + 1;
    while (end < text.size() && string_view(")*.}").find(text[end]) != string_view::npos) ++end;
    const std::string behind = LowerAscii(text.substr(end, 24));
    for (const string_view verb : {" is correct", " is right", " is the answer", " is the correct", " is true",
                                   " is best", " is the best", " is the right", "是正确", "正确"}) {
      if (behind.starts_with(verb)) out = text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<char> ExtractChoice(string_view text) {
  if (text.size() > kChoiceWindow) text.remove_prefix(text.size() - kChoiceWindow);
  if (const auto boxed = LastBoxed(text, text.size())) return BareChoice(boxed->content);
  if (const auto bare = BareChoice(text)) return bare;
  const std::string lower = LowerAscii(text);
  if (const auto phrase = LastPhrase(lower, false, 0, lower.size())) {
    const string_view behind = text.substr(phrase->end);
    if (const auto letter = FirstAlone(behind)) return letter;
    string_view word = TrimSpaces(behind);
    word = word.substr(0, word.find_first_of(" \n.,*"));
    if (const auto native = NativeLetter(word)) return native;
  }
  if (const auto stated = StatedChoice(text)) return stated;
  // "B. not A": the letter that the text begins with.
  if (!text.empty() && Chooses(text, 0)) return text[0];
  // The last "(C)", else the last lone letter.
  for (size_t i = text.size(); i-- > 1;) {
    const bool bracketed = text[i - 1] == '(' && i + 1 < text.size() && text[i + 1] == ')' && IsChoiceLetter(text[i]);
    if (bracketed && !IsRejected(text, i)) return text[i];
  }
  for (size_t i = text.size(); i-- > 0;) {
    if (Chooses(text, i)) return text[i];
  }
  return std::nullopt;
}

}  // namespace iha::scoring::math
