#include "benchmarks/scoring/extract_lm_eval.h"

#include <cstddef>

namespace iha::scoring {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsStrictChar(char c) { return IsDigit(c) || c == '.' || c == ','; }                // [0-9\.\,]
bool IsFlexibleChar(char c) { return IsDigit(c) || c == '.' || c == ',' || c == '$'; }  // [$0-9.,]

template <class Predicate>
size_t RunEnd(std::string_view text, size_t begin, Predicate predicate) {
  while (begin < text.size() && predicate(text[begin])) ++begin;
  return begin;
}

size_t AfterMinus(std::string_view text, size_t pos) { return pos < text.size() && text[pos] == '-' ? pos + 1 : pos; }

// End of a match of `(-?[$0-9.,]{2,})|(-?[0-9]+)` at `pos`, or `pos` when there is none.
size_t FlexibleEnd(std::string_view text, size_t pos) {
  const size_t body = AfterMinus(text, pos);
  const size_t end = RunEnd(text, body, IsFlexibleChar);
  if (end - body >= 2) return end;
  const size_t digits_end = RunEnd(text, body, IsDigit);
  return digits_end > body ? digits_end : pos;
}

// Calls `match_at(begin)` (which returns the end of the group that starts at `begin`, or npos) behind each occurrence
// of `prefix`, left to right and without overlap as re.findall does, and returns the first or last group matched.
template <class MatchAt>
std::string GroupAfter(std::string_view text, std::string_view prefix, bool last, MatchAt match_at) {
  std::string_view found = kLmEvalInvalid;
  size_t pos = 0;
  while ((pos = text.find(prefix, pos)) != std::string_view::npos) {
    const size_t begin = pos + prefix.size();
    const size_t end = match_at(begin);
    if (end == std::string_view::npos) {
      ++pos;
      continue;
    }
    found = text.substr(begin, end - begin);
    if (!last) break;
    pos = end;
  }
  return std::string(found);
}

}  // namespace

std::string LmEvalGsm8kStrict(std::string_view output) {
  return GroupAfter(output, "#### ", /*last=*/false, [&](size_t begin) {
    const size_t body = AfterMinus(output, begin);
    const size_t end = RunEnd(output, body, IsStrictChar);
    return end > body ? end : std::string_view::npos;
  });
}

std::string LmEvalGsm8kFlexible(std::string_view output) {
  std::string_view found = kLmEvalInvalid;
  for (size_t pos = 0; pos < output.size();) {
    const size_t end = FlexibleEnd(output, pos);
    if (end == pos) {
      ++pos;
      continue;
    }
    found = output.substr(pos, end - pos);
    pos = end;
  }
  return std::string(found);
}

std::string LmEvalGsm8kCotStrict(std::string_view output) {
  return GroupAfter(output, "The answer is ", /*last=*/false, [&](size_t begin) {
    const size_t body = AfterMinus(output, begin);
    size_t end = RunEnd(output, body, IsStrictChar);
    const bool any_char_follows = end < output.size() && output[end] != '\n';
    if (!any_char_follows && end > body) --end;  // backtrack: the group's last character becomes the "any character"
    return end > body ? end : std::string_view::npos;
  });
}

std::string LmEvalGsm8kCotLlamaStrict(std::string_view output) {
  return GroupAfter(output, "The final answer is ", /*last=*/true, [&](size_t begin) {
    const size_t end = FlexibleEnd(output, begin);
    return end > begin ? end : std::string_view::npos;
  });
}

std::string LmEvalGsm8kSelfConsistency(std::string_view output) {
  return GroupAfter(output, "The answer is ", /*last=*/false, [&](size_t begin) {
    const size_t body = AfterMinus(output, begin);
    size_t end = RunEnd(output, body, IsStrictChar);
    while (end > body && !IsDigit(output[end - 1])) --end;
    return end > body ? end : std::string_view::npos;
  });
}

std::string LmEvalNormalise(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c != ',' && c != '$') result.push_back(c);
  }
  const size_t mark = result.rfind("#### ");
  if (mark != std::string::npos) result.erase(0, mark + 5);
  const size_t tail = !result.empty() && result.back() == '\n' ? 2 : 1;
  if (result.size() >= tail && result[result.size() - tail] == '.') {
    result.erase(result.size() - tail, 1);
  }
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace iha::scoring
