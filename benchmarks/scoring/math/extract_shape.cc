#include "benchmarks/scoring/math/extract_shape.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;

bool StopWord(string_view word) {
  static const auto* const kWords = new std::unordered_set<string_view>{
      "is",   "the", "it",  "of",    "to",   "be",   "we",   "so",   "for",   "are",  "was", "has", "not",
      "no",   "its", "by",  "as",    "at",   "an",   "if",   "all",  "let",   "get",  "can", "our", "use",
      "only", "que", "est", "un",    "une",  "de",   "la",   "le",   "il",    "donc", "der", "die", "das",
      "ist",  "el",  "los", "there", "that", "this", "then", "thus", "hence", "from"};
  return kWords->contains(word);
}

// A run of ASCII letters that belongs to prose, not to a formula.
bool IsProse(string_view run) {
  const std::string lower = LowerAscii(run);
  if (StopWord(lower)) return true;
  // Words of times and dates, and those that JoinAbout reads.
  for (const string_view word : {"noon", "midnight", "clock", "past", "quarter", "half", "approximately", "about",
                                 "approx", "roughly", "minus", "negative", "plus"}) {
    if (lower == word) return false;
  }
  if (run.size() < 3 || PlainCommand(lower).has_value() || IsUnit(lower) || IsConnective(lower) ||
      IsPercentWord(lower) || MonthOf(lower).has_value() || WeekdayOf(lower).has_value() ||
      MultiplierOf(lower).has_value() || NumberWord(lower).has_value()) {
    return false;
  }
  const bool capitals = std::all_of(run.begin(), run.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (capitals || std::is_sorted(run.begin(), run.end())) return false;
  return run.size() >= 6 || lower.find_first_of("aeiouy") != std::string::npos;
}

}  // namespace

bool IsDateLike(string_view text) {
  if (text.size() > 40) return false;
  const std::string lower = LowerAscii(text);
  for (size_t i = 0; i < lower.size();) {
    size_t end = i;
    while (end < lower.size() && IsAsciiLetter(lower[end])) ++end;
    // "may" alone is a verb.
    const string_view word = string_view(lower).substr(i, end - i);
    const bool month =
        MonthOf(word).has_value() && (word != "may" || (text[i] == 'M' && lower.find_first_of("0123456789") != kNone) ||
                                      lower.find(" of may") != kNone);
    if (end >= i + 3 && month && (end > i + 3 || word == "may")) return true;
    i = end + 1;
  }
  return false;
}

Shape ShapeOf(string_view text) {
  Shape shape;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\\') {
      size_t start = i + 1;
      while (start < text.size() && text[start] == '\\') ++start;  // escaped twice
      size_t end = start;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      const string_view name = text.substr(start, end - start);
      const bool skips = name.starts_with("text") || name.starts_with("math") || name == "begin" || name == "end" ||
                         name == "mbox" || name == "operatorname" || name == "angle" || name == "triangle";
      if (skips && end < text.size() && text[end] == '{') end = std::min(text.find('}', end), text.size() - 1) + 1;
      shape.formula = true;
      i = std::max(end, i + 2);
    } else if (IsAsciiLetter(c)) {
      size_t end = i;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      const bool glued = (i > 0 && (IsAsciiDigit(text[i - 1]) || text[i - 1] == '_')) ||
                         (end < text.size() && IsAsciiDigit(text[end]));
      ++shape.words;
      if (!glued && IsProse(text.substr(i, end - i))) ++shape.prose;
      i = end;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0xCE || byte == 0xCF) {  // three Greek letters in a row are a word
        size_t end = i;
        while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) ++end;
        shape.prose += end - i >= 6 ? 1 : 0;
        i = end;
        continue;
      }
      // A connective and the marks of Chinese and Japanese sentences.
      if (byte >= 0xE3 && (IsConnective(text.substr(i, 3)) || text.substr(i).starts_with("\u3001"))) {
        i += 3;
        continue;
      }
      if (byte >= 0xD0 && byte <= 0xD1) {  // a Cyrillic word
        size_t end = i;
        while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) ++end;
        if (!IsConnective(text.substr(i, end - i))) shape.prose += (end - i) / 2;
        i = end;
        continue;
      }
      if (byte >= 0xE3 || (byte >= 0xD0 && byte <= 0xDF) || byte == 0xC3) ++shape.prose;  // letters of other scripts
      if (byte == 0xE0 || byte == 0xE1) ++shape.prose;
      shape.digits = shape.digits || FractionMark(text.substr(i)) > 0;
      const string_view two = text.substr(i, 2);  // raised digits
      shape.formula = shape.formula || two == "\u00b2" || two == "\u00b3" || two == "\u00b9";
      shape.digits = shape.digits || IsAsciiDigit(c);
      shape.formula = shape.formula || string_view("$^_=<>+*/[]{}|").find(c) != kNone;
      ++i;
    }
  }
  return shape;
}

string_view YesOrNo(string_view text) {
  const std::string start = LowerAscii(text.substr(0, 16));
  for (const string_view lead : {"so ", "so, ", "thus ", "thus, ", "hence ", "hence, ", "therefore ", "therefore, "}) {
    const string_view behind = string_view(start).substr(std::min(lead.size(), start.size()));
    if (start.starts_with(lead) && (behind.starts_with("yes") || behind.starts_with("no") ||
                                    behind.starts_with("true") || behind.starts_with("fals"))) {
      text.remove_prefix(lead.size());
      break;
    }
  }
  size_t end = 0;
  while (end < text.size() && IsAsciiLetter(text[end])) ++end;
  const std::string word = LowerAscii(text.substr(0, end));
  const bool says = word == "yes" || word == "no" || word == "true" || word == "false";
  return says && end < text.size() && string_view(",.;:!").find(text[end]) != kNone ? text.substr(0, end)
                                                                                    : string_view();
}

string_view SaidOf(string_view text) {
  while (!text.empty() && text.back() == '.') text.remove_suffix(1);
  const std::string opening = LowerAscii(text.substr(0, 12));
  for (const string_view lead : {"so, ", "so ", "thus, ", "thus ", "hence, ", "hence ", "therefore, ", "therefore "}) {
    if (!opening.starts_with(lead)) continue;
    text.remove_prefix(lead.size());
    break;
  }
  const string_view last = text.substr(text.rfind(' ') + 1);
  const bool short_text = std::count(text.begin(), text.end(), ' ') < 4 &&
                          std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || IsAsciiLetter(c); });
  if (short_text && last.size() < text.size() && (last == "converges" || last == "diverges")) return last;
  const size_t verb = text.rfind(" is ");
  if (verb == kNone) return "";
  for (size_t i = 0; i < text.size(); ++i) {
    const bool lone =
        IsAsciiLetter(text[i]) && (i == 0 || text[i - 1] == ' ') && (i + 1 == text.size() || text[i + 1] == ' ');
    if ((!IsAsciiLetter(text[i]) && text[i] != ' ') || (lone && text[i] != 'a' && text[i] != 'A')) return "";
  }
  const string_view said = TrimSpaces(text.substr(verb + 4));
  const std::string lower = LowerAscii(text.substr(0, 5));
  const bool subject = lower.starts_with("the ") || lower.starts_with("it ") || lower.starts_with("this ");
  return subject && std::count(said.begin(), said.end(), ' ') < 3 ? said : string_view();
}

string_view AnswerTag(string_view text) {
  const size_t open = text.rfind("<answer>");
  if (open == kNone) return "";
  const string_view rest = text.substr(open + 8);
  return TrimSpaces(rest.substr(0, rest.find("</answer>")));
}

string_view WithoutMarkdown(string_view text) {
  text = TrimSpaces(text);
  while (!text.empty() && (text.front() == '#' || text.front() == '>')) text = TrimSpaces(text.substr(1));
  for (const string_view mark : {"```", "**", "__", "*", "`"}) {
    const bool around = text.size() > 2 * mark.size() && text.starts_with(mark) && text.ends_with(mark);
    if (around && text.substr(mark.size(), text.size() - 2 * mark.size()).find(mark) == kNone) {
      text = TrimSpaces(text.substr(mark.size(), text.size() - 2 * mark.size()));
    }
  }
  return text;
}

string_view WithoutLead(string_view text) {
  for (const string_view lead : {"A: ", "In ", "After ", "At "}) {
    const size_t size = lead.size();
    const bool value = text.size() > size && (IsAsciiDigit(text[size]) || text[size] == '$' || text[size] == '\\');
    if (value && text.starts_with(lead) && text.find('\n') == kNone) return text.substr(size);
  }
  // "Total: 12"
  const size_t colon = text.find(": ");
  const bool label = colon != kNone && colon > 2 && text.find('\n') == kNone &&
                     std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(colon),
                                 [](char c) { return IsAsciiLetter(c) || c == ' '; });
  const string_view value = label ? text.substr(colon + 2) : string_view();
  return !value.empty() && value.find_first_not_of("0123456789.,/$%- ") == kNone ? value : text;
}

bool NumbersJoined(string_view text) {
  const auto number = [](string_view part) { return !part.empty() && part.find_first_not_of("0123456789.") == kNone; };
  for (const string_view join : {" to ", " out of "}) {
    const size_t at = text.find(join);
    if (at != kNone && number(text.substr(0, at)) && number(text.substr(at + join.size()))) return true;
  }
  return false;
}

}  // namespace iha::scoring::math
