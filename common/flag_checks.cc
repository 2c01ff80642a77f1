#include "common/flag_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <string>

#include "common/errors.h"
#include "common/numerics_spec.h"
#include "common/text.h"

namespace iha {
namespace {

bool InRange(const std::string& text, int64_t low, uint64_t high) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (text.starts_with('-')) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end && value >= low;
  }
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(begin + (text.starts_with('+') ? 1 : 0), end, value);
  if (error != std::errc() || stop != end || value > high) return false;
  return low < 0 || value >= static_cast<uint64_t>(low);
}

std::string Refusal(const std::string& text, const char* kind, const std::string& range) {
  return fmt::format("found \"{}\", expected a {} from {}", TerminalSafe(text, 40), kind, range);
}

}  // namespace

CLI::Validator WholeNumber(int64_t low, uint64_t high) {
  const bool open = high >= static_cast<uint64_t>(INT64_MAX);
  const std::string range = open ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
  const auto check = [low, high, range](const std::string& text) {
    return InRange(text, low, high) ? std::string() : Refusal(text, "whole number", range);
  };
  return CLI::Validator(check, "from " + range);
}

CLI::Validator DeviceName(bool or_auto) {
  const auto check = [or_auto](const std::string& text) {
    const bool known = text == "cpu" || text == kEmulatedDevice || CudaIndexOf(text).has_value();
    if (known || (or_auto && text == "auto")) return std::string();
    return fmt::format("found \"{}\", expected {}cpu, emulated, cuda or cuda:N", TerminalSafe(text, 40),
                       or_auto ? "auto, " : "");
  };
  return CLI::Validator(check, "DEVICE");
}

absl::Status NoFastNumericsOn(const std::string& device) {
  return Unavailable(
      "--numerics fast: found --device {}, expected cuda, cuda:N or emulated; on the CPU use --numerics exact, which "
      "loses no time there",
      device);
}

CLI::Validator RealNumber(double low, double high) {
  const std::string range = fmt::format("{} to {}", low, high);
  const auto check = [low, high, range](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool whole = !text.empty() && end == text.c_str() + text.size();
    return whole && value >= low && value <= high ? std::string() : Refusal(text, "number", range);
  };
  return CLI::Validator(check, "from " + range);
}

}  // namespace iha
