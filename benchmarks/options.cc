#include "benchmarks/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "absl/time/civil_time.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/text.h"

namespace iha::benchmarks {

absl::StatusOr<BenchmarkRef> WithDefaults(const BenchmarkInfo& info, const BenchmarkRef& ref) {
  std::vector<std::string> known;
  for (const OptionInfo& option : info.options) known.push_back(option.name);
  for (const auto& [name, value] : ref.options) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Annotate(UnknownName("option", name, known), ref.name);
    }
  }
  BenchmarkRef full{ref.name, ref.options};
  for (const OptionInfo& option : info.options) full.options.emplace(option.name, option.default_value);
  return full;
}

absl::StatusOr<int64_t> IntegerOption(const BenchmarkRef& ref, const std::string& option, int64_t low, int64_t high) {
  const std::string& text = ref.options.at(option);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return InvalidArgument("{}: option {}: found '{}', expected an integer from {} to {}", ref.name, option, text, low,
                           high);
  }
  return value;
}

absl::StatusOr<std::string> ChoiceOption(const BenchmarkRef& ref, const std::string& option,
                                         const std::vector<std::string>& choices) {
  const std::string& text = ref.options.at(option);
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  return InvalidArgument("{}: option {}: found '{}', expected one of {}", ref.name, option, text,
                         fmt::join(choices, ", "));
}

bool IsDay(const std::string& text) {
  absl::CivilDay day;
  return text.size() == 10 && absl::ParseCivilTime(text, &day) && absl::FormatCivilTime(day) == text && day.year() > 0;
}

absl::StatusOr<std::string> DayOption(const BenchmarkRef& ref, const std::string& option) {
  const std::string& text = ref.options.at(option);
  if (IsDay(text)) return text;
  return InvalidArgument("{}: option {}: found \"{}\", expected a day as YYYY-MM-DD", ref.name, option,
                         TerminalSafe(text, 40));
}

OptionInfo TemplateDateOption() {
  return {kTemplateDateOption, "2024-07-26", "the day that a chat template's strftime_now sees, never the clock's"};
}

}  // namespace iha::benchmarks
