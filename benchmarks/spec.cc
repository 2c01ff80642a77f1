// Benchmark specs as text, and the digest of what a benchmark shows a model.
#include <charconv>
#include <limits>

#include "benchmarks/benchmark.h"
#include "benchmarks/options.h"
#include "common/canonical.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

absl::StatusOr<std::string> Decode(const std::string& spec, std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return InvalidArgument("spec '{}': '%' must be followed by two hex digits (write %25 for a percent sign)",
                             TerminalSafe(spec, 200));
    }
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

// Everything that the syntax, a shell word or a terminal could trip over is written as %XX.
std::string Encode(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-_.,:@/").find(c) != std::string_view::npos;
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

// Options that may stand alone, for "yes".
bool IsFlag(std::string_view name) { return name == kAllowOverContextOption; }

bool IsOptionName(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

absl::Status GivenTwice(const std::string& spec, const std::string& option) {
  return InvalidArgument("spec '{}': option {} is given twice", TerminalSafe(spec, 200), option);
}

// Moves option `name` of `ref`, if given, to `value`.
template <class T>
absl::Status TakeNumber(BenchmarkRef& ref, const char* name, T low, T high, T& value) {
  const auto it = ref.options.find(name);
  if (it == ref.options.end()) return absl::OkStatus();
  const std::string text = std::move(it->second);
  ref.options.erase(it);
  T parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || !(parsed >= low && parsed <= high)) {
    return InvalidArgument("{}: option {}: found '{}', expected a number from {} to {}", ref.name, name,
                           TerminalSafe(text, 80), low, high);
  }
  value = parsed;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchmarkRef> ParseBenchmarkRef(const std::string& spec) {
  const std::string_view view = spec;
  const size_t mark = view.find('?');
  BenchmarkRef ref;
  ref.name = std::string(view.substr(0, mark));
  if (ref.name.empty()) {
    return InvalidArgument("spec '{}': the name is empty; expected NAME or NAME?option=value&...",
                           TerminalSafe(spec, 200));
  }
  if (ref.name.find('&') != std::string::npos) {
    return InvalidArgument("spec '{}': options begin with '?'; expected NAME or NAME?option=value&...",
                           TerminalSafe(spec, 200));
  }
  for (size_t pos = mark; pos != std::string_view::npos;) {
    const size_t begin = pos + 1;
    pos = view.find('&', begin);
    const std::string_view part = view.substr(begin, pos == std::string_view::npos ? pos : pos - begin);
    const size_t equals = part.find('=');
    const std::string name(part.substr(0, equals));
    if (equals == std::string_view::npos && IsFlag(name)) {
      if (!ref.options.emplace(name, "yes").second) return GivenTwice(spec, name);
      continue;
    }
    if (equals == std::string_view::npos || !IsOptionName(name)) {
      return InvalidArgument("spec '{}': found '{}', expected option=value with option of a-z, 0-9 and _",
                             TerminalSafe(spec, 200), TerminalSafe(part, 80));
    }
    IHA_ASSIGN_OR_RETURN(std::string value, Decode(spec, part.substr(equals + 1)));
    if (!ref.options.emplace(name, std::move(value)).second) return GivenTwice(spec, name);
  }
  return ref;
}

std::string ToString(const BenchmarkRef& ref) {
  std::string text = ref.name;
  char separator = '?';
  for (const auto& [name, value] : ref.options) {
    text += separator + name + "=" + Encode(value);
    separator = '&';
  }
  return text;
}

absl::Status TakeSampling(BenchmarkRef& ref, SamplingParams& sampling) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  constexpr uint64_t kMostSeed = std::numeric_limits<uint64_t>::max();
  constexpr double kSmallestTopP = 1e-6;  // top_p lies in (0, 1]
  constexpr double kHottest = 1e6;
  IHA_RETURN_IF_ERROR(TakeNumber(ref, "samples", 1, kMost, sampling.samples));
  IHA_RETURN_IF_ERROR(TakeNumber(ref, "temperature", 0.0, kHottest, sampling.temperature));
  IHA_RETURN_IF_ERROR(TakeNumber(ref, "top_p", kSmallestTopP, 1.0, sampling.top_p));
  IHA_RETURN_IF_ERROR(TakeNumber(ref, "top_k", 0, kMost, sampling.top_k));
  IHA_RETURN_IF_ERROR(TakeNumber(ref, "seed", uint64_t{0}, kMostSeed, sampling.seed));
  return TakeNumber(ref, "max_new_tokens", 1, kMost, sampling.max_new_tokens);
}

Digest PromptDigest(const Benchmark& benchmark, int64_t items) {
  CanonicalWriter writer("iha.prompts", 1);
  writer.String(ToString(benchmark.ref())).Int(items);
  if (benchmark.info().item_tokens > 0) return writer.String(benchmark.info().version).Hash();
  for (int64_t i = 0; i < items; ++i) {
    const Prompt prompt = benchmark.Render(i);
    writer.String(prompt.text).List(prompt.messages.size());
    for (const Message& message : prompt.messages) writer.String(message.role).String(message.content);
    if (!prompt.messages.empty()) writer.String(prompt.template_date);
    writer.List(prompt.stops.size());
    for (const std::string& stop : prompt.stops) writer.String(stop);
    if (prompt.choices.empty()) continue;
    writer.List(prompt.choices.size());
    for (const std::string& choice : prompt.choices) writer.String(choice);
  }
  return writer.Hash();
}

}  // namespace iha::benchmarks
