#include "benchmarks/scoring/plain_answers.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "common/errors.h"
#include "common/text.h"

namespace iha::scoring {
namespace {

constexpr uint32_t kMatchLimit = 1'000'000;  // steps of backtracking
constexpr uint32_t kDepthLimit = 10'000;
constexpr uint32_t kHeapKib = 16 * 1024;
constexpr size_t kMaxPattern = 64 * 1024;

template <auto kFree>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};

std::string PcreMessage(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR Bytes(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

absl::StatusOr<std::optional<std::string>> FirstMatch(std::string_view pattern, std::string_view text) {
  if (pattern.size() > kMaxPattern) {
    return InvalidArgument("pattern: {} bytes; expected at most {}", pattern.size(), kMaxPattern);
  }
  int error = 0;
  size_t offset = 0;
  // MATCH_INVALID_UTF: a model's text may break off inside a character.
  const std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>> code(
      pcre2_compile(Bytes(pattern), pattern.size(), PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                    &error, &offset, nullptr));
  if (code == nullptr) {
    return InvalidArgument("pattern '{}': {} at byte {}", TerminalSafe(pattern, 80), PcreMessage(error), offset);
  }
  const std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  const std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>> limits(
      pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  pcre2_set_depth_limit(limits.get(), kDepthLimit);
  pcre2_set_heap_limit(limits.get(), kHeapKib);
  const int found = pcre2_match(code.get(), Bytes(text), text.size(), 0, 0, match.get(), limits.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::optional<std::string>();
  if (found < 0) return InvalidArgument("pattern '{}': {}", TerminalSafe(pattern, 80), PcreMessage(found));
  const size_t* range = pcre2_get_ovector_pointer(match.get());
  const size_t group = found > 1 && range[2] != PCRE2_UNSET ? 1 : 0;
  return std::optional<std::string>(text.substr(range[2 * group], range[2 * group + 1] - range[2 * group]));
}

}  // namespace iha::scoring
