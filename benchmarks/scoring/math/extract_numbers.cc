// Numbers in plain text and what they are part of (extract_impl.h).
#include <algorithm>
#include <initializer_list>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {

using std::string_view;

namespace {

constexpr size_t kNone = string_view::npos;

}  // namespace

size_t FractionMark(string_view text) {
  const bool latin = text.size() > 1 && text[0] == '\xC2' && text[1] >= '\xBC' && text[1] <= '\xBE';
  const bool other = text.starts_with("\xE2\x85") && text.size() > 2 && text[2] >= '\x90' && text[2] <= '\x9E';
  return latin ? 2 : other ? 3 : 0;
}

bool IsNumberPart(char c) { return IsAsciiDigit(c) || c == '.' || c == ',' || c == '/' || c == ':'; }

std::optional<Phrase> LastPlainNumber(string_view text, size_t limit) {
  size_t end = std::min(limit, text.size());
  while (end > 0) {
    while (end > 0 && !IsAsciiDigit(text[end - 1])) --end;
    if (end == 0) return std::nullopt;
    size_t begin = end;
    while (begin > 0 && IsNumberPart(text[begin - 1])) --begin;
    while (begin < end && (text[begin] == ',' || text[begin] == '/' || text[begin] == ':' ||
                           (text[begin] == '.' && !(begin + 1 < end && IsAsciiDigit(text[begin + 1]))))) {
      ++begin;
    }
    // Letters in front make it a name.
    if (begin > 0 && (IsAsciiLetter(text[begin - 1]) || text[begin - 1] == '_' || text[begin - 1] == '^')) {
      end = begin - 1;
      continue;
    }
    if (const string_view mark = text.substr(end, 3); MultiplierOf(mark).has_value()) end += mark.size();  // "3.5万"
    const bool sign = begin > 0 && text[begin - 1] == '-' &&
                      (begin < 2 || (!IsAsciiDigit(text[begin - 2]) && !IsAsciiLetter(text[begin - 2])));
    if (end < text.size() && text[end] == '%') ++end;
    if (text.substr(end).starts_with("\\%")) end += 2;
    return Phrase{sign ? begin - 1 : begin, end};
  }
  return std::nullopt;
}

namespace {

// What stands between a day and its month: "20 June", "the 5th of May".
bool IsDayGap(string_view gap) {
  for (const string_view suffix : {"th", "st", "nd", "rd"}) {
    if (gap.starts_with(suffix)) gap.remove_prefix(2);
  }
  return gap == " " || gap == " of ";
}

// Behind the month that follows the day at `number`; its end where none does.
size_t MonthEnd(string_view text, Phrase number) {
  for (const size_t gap : {size_t{1}, size_t{3}, size_t{4}, size_t{6}}) {
    const size_t at = number.end + gap;
    if (at >= text.size() || !IsDayGap(text.substr(number.end, gap))) continue;
    size_t end = at;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    if (end > at + 2 && text[at] >= 'A' && text[at] <= 'Z' &&
        MonthOf(LowerAscii(text.substr(at, end - at))).has_value()) {
      return end;
    }
  }
  return number.end;
}

}  // namespace

// "March 5, 2020", "5th of May", "3 to 2": what the last number is a part of.
Phrase AroundNumber(string_view text, Phrase number) {
  const size_t from = std::max(text.rfind('\n', number.begin) + 1, number.begin > 24 ? number.begin - 24 : 0);
  const std::string before = LowerAscii(text.substr(from, number.begin - from));
  for (size_t i = 0; i < before.size();) {
    size_t end = i;
    while (end < before.size() && IsAsciiLetter(before[end])) ++end;
    const bool month = end > i + 2 && MonthOf(string_view(before).substr(i, end - i)).has_value() && before != "may ";
    const bool plain = before.find_first_not_of(" ,.0123456789stndrh", end) == kNone;
    if (month && plain) {
      size_t begin = from + i;
      const auto day = LastPlainNumber(text, begin);
      if (day.has_value() && IsDayGap(text.substr(day->end, begin - day->end))) begin = day->begin;
      return {begin, number.end};
    }
    i = std::max(end, i + 1);
  }
  if (const size_t end = MonthEnd(text, number); end > number.end) return {number.begin, end};
  if (before.ends_with(" to ") && text.find("ratio") < number.begin) {
    const auto first = LastPlainNumber(text, number.begin - 4);
    if (first.has_value() && first->end + 4 == number.begin) return {first->begin, number.end};
  }
  return number;
}

}  // namespace iha::scoring::math
