#include "benchmarks/scoring/math/dates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kLongestNumericDate = 12;

// "20", "20th", "twentieth" -> 20.
std::optional<int> DayOrYear(string_view word) {
  if (const auto ordinal = OrdinalWord(word)) return static_cast<int>(*ordinal);
  for (const string_view suffix : {"th", "st", "nd", "rd"}) {
    if (word.ends_with(suffix)) word.remove_suffix(2);
  }
  if (word.empty() || word.size() > 4 || word.find_first_not_of("0123456789") != string_view::npos) return std::nullopt;
  return std::stoi(std::string(word));
}

// "2023年1月5日": year, month and perhaps day.
Ref ChineseDate(Tree& tree, string_view text) {
  std::string parts[3];
  for (size_t i = 0; i < 3; ++i) {
    constexpr string_view kMarks[] = {"年", "月", "日"};
    const size_t end = text.find(kMarks[i]);
    if (end == string_view::npos && i == 2 && text.empty()) break;
    if (end == string_view::npos || end == 0 || end > 4 || text.find_first_not_of("0123456789") < end) return kNoRef;
    parts[i] = std::to_string(std::stoi(std::string(text.substr(0, end))));
    text = text.substr(end + kMarks[i].size());
  }
  return text.empty() ? tree.New(Kind::kDate, fmt::format("{}-{}-{}", parts[0], parts[1], parts[2]), {}) : kNoRef;
}

// "1776-07-04".
Ref IsoDate(Tree& tree, string_view cleaned) {
  const string_view text = TrimSpaces(cleaned);
  if (text.find("年") != string_view::npos) return ChineseDate(tree, text);
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return kNoRef;
  for (const size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!IsAsciiDigit(text[i])) return kNoRef;
  }
  const auto part = [&](size_t at, size_t size) { return std::stoi(std::string(text.substr(at, size))); };
  if (part(5, 2) < 1 || part(5, 2) > 12 || part(8, 2) < 1 || part(8, 2) > 31) return kNoRef;
  return tree.New(Kind::kDate, fmt::format("{}-{}-{}", part(0, 4), part(5, 2), part(8, 2)), {});
}

// "half past three", "quarter to six", "ten past six", "8 o'clock": a time that leaves the half of the day open.
Ref TimeInWords(Tree& tree, const std::vector<string_view>& words) {
  const auto number = [](string_view word) -> std::optional<int64_t> {
    if (const auto digits = DayOrYear(word)) return *digits;
    return NumberWord(word);
  };
  const auto clock = [&](int64_t hour, int64_t minute) {
    if (hour < 1 || hour > 12 || minute < 0 || minute > 59) return kNoRef;
    return tree.New(Kind::kRatio, "h:m", {tree.Number(Rational(hour)), tree.Number(Rational(minute))});
  };
  if (words.size() == 3 && words[1] == "o" && words[2] == "clock") {
    const auto hour = number(words[0]);
    return hour.has_value() ? clock(*hour, 0) : kNoRef;
  }
  if (words.size() != 3 || (words[1] != "past" && words[1] != "to")) return kNoRef;
  const auto hour = number(words[2]);
  const auto minutes = words[0] == "half"      ? std::optional<int64_t>(30)
                       : words[0] == "quarter" ? std::optional<int64_t>(15)
                                               : NumberWord(words[0]);
  if (!hour.has_value() || !minutes.has_value()) return kNoRef;
  if (words[1] == "past") return clock(*hour, *minutes);
  return clock(*hour == 1 ? 12 : *hour - 1, 60 - *minutes);
}

}  // namespace

Ref ParseDate(Tree& tree, std::vector<string_view> words, string_view cleaned) {
  if (const Ref iso = IsoDate(tree, cleaned); iso != kNoRef) return iso;
  if (words.size() > 2 && WeekdayOf(words[0]).has_value()) words.erase(words.begin());
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

Ref ParseTime(Tree& tree, const std::vector<string_view>& words, string_view cleaned) {
  if (const Ref time = TimeInWords(tree, words); time != kNoRef) return time;
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

std::vector<Ref> NumericDates(Tree& tree, string_view cleaned) {
  const string_view text = TrimSpaces(cleaned);
  if (text.empty() || text.size() > kLongestNumericDate) return {};
  std::vector<string_view> parts;
  char mark = '\0';
  for (size_t i = 0; i <= text.size();) {
    const size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
    if (end == i || end > i + 4 || parts.size() == 3) return {};
    parts.push_back(text.substr(i, end - i));
    if (end == text.size()) break;
    if (string_view("/-.").find(text[end]) == string_view::npos || (mark != '\0' && mark != text[end])) return {};
    mark = text[end];
    i = end + 1;
  }
  const auto value = [](string_view part) { return std::stoi(std::string(part)); };
  std::vector<Ref> out;
  // An empty part is one that isn't given.
  const auto add = [&](string_view year, string_view month, string_view day) {
    const bool fits = (year.empty() || year.size() == 4) && month.size() < 3 && day.size() < 3;
    if (!fits || value(month) < 1 || value(month) > 12) return;
    if (!day.empty() && (value(day) < 1 || value(day) > 31)) return;
    const auto shown = [&](string_view part) { return part.empty() ? std::string() : std::to_string(value(part)); };
    out.push_back(tree.New(Kind::kDate, fmt::format("{}-{}-{}", shown(year), shown(month), shown(day)), {}));
  };
  if (parts.size() == 2) {
    const bool year_first = parts[0].size() == 4;
    if (year_first || parts[1].size() == 4) {
      add(parts[year_first ? 0 : 1], parts[year_first ? 1 : 0], "");
    } else {
      add("", parts[0], parts[1]);
      add("", parts[1], parts[0]);
    }
  } else if (parts.size() == 3) {
    if (parts[0].size() == 4) add(parts[0], parts[1], parts[2]);
    if (parts[2].size() == 4) {
      add(parts[2], parts[0], parts[1]);
      add(parts[2], parts[1], parts[0]);
    }
  }
  return out;
}

}  // namespace iha::scoring::math
