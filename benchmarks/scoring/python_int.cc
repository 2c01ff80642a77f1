#include "benchmarks/scoring/python_int.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "benchmarks/scoring/python_text.h"
#include "common/text.h"

namespace iha::scoring {
namespace {

constexpr size_t kMaxDigits = 4300;  // sys.get_int_max_str_digits()

}  // namespace

bool IsPythonInt(std::string_view text) {
  std::vector<char32_t> characters;
  while (!text.empty()) {
    char32_t c = 0;
    const size_t bytes = Utf8Length(text, &c);
    if (bytes == 0) return false;
    characters.push_back(c);
    text.remove_prefix(bytes);
  }
  size_t begin = 0, end = characters.size();
  while (begin < end && IsPythonSpace(characters[begin])) ++begin;
  while (end > begin && IsPythonSpace(characters[end - 1])) --end;
  if (begin < end && (characters[begin] == U'+' || characters[begin] == U'-')) ++begin;
  size_t digits = 0;
  bool after_digit = false;  // an underscore may stand only between two digits
  for (size_t i = begin; i < end; ++i) {
    if (characters[i] == U'_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (!IsPythonDigit(characters[i])) return false;
    after_digit = true;
    ++digits;
  }
  return after_digit && digits <= kMaxDigits;
}

bool IsCanonicalInt(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text == "0") return !negative;
  return !text.empty() && text.front() != '0' && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace iha::scoring
