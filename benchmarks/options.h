// options.h: reading a BenchmarkRef's options: defaults filled in, unknown names and bad values refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

// `ref` with every option of `info` present. InvalidArgument: an option that `info` doesn't list (suggests the
// nearest).
absl::StatusOr<BenchmarkRef> WithDefaults(const BenchmarkInfo& info, const BenchmarkRef& ref);

// Values of an option of a ref that WithDefaults returned. InvalidArgument names the option, what was found and
// expected.
absl::StatusOr<int64_t> IntegerOption(const BenchmarkRef& ref, const std::string& option, int64_t low, int64_t high);
absl::StatusOr<std::string> ChoiceOption(const BenchmarkRef& ref, const std::string& option,
                                         const std::vector<std::string>& choices);

// A day that exists, as YYYY-MM-DD, from 0001-01-01: what template_date takes.
bool IsDay(const std::string& text);
absl::StatusOr<std::string> DayOption(const BenchmarkRef& ref, const std::string& option);

// The option of every benchmark with a chat form; a sweep's template_date fills it in.
inline constexpr char kTemplateDateOption[] = "template_date";
OptionInfo TemplateDateOption();

// The option of benchmarks of a given length; alone it stands for "yes".
inline constexpr char kAllowOverContextOption[] = "allow_over_context";

}  // namespace iha::benchmarks
