// Values of several numbers (extract_impl.h).
#include <algorithm>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/quantities.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kQuantityBytes = 60;

bool IsCompound(string_view text) {
  const auto quantity = ParseQuantity(text);
  return quantity.has_value() && quantity->compound();
}

// Behind the unit that follows the value that ends at `at`, with the dress of \\text{...}; `at` when there is none.
size_t UnitEnd(string_view text, size_t at) {
  size_t i = at;
  while (i < text.size() && (IsAsciiSpace(text[i]) || text[i] == '$' || text[i] == '~')) ++i;
  for (const string_view command : {"\\text{", "\\mathrm{", "\\mbox{", "\\textrm{"}) {
    if (!text.substr(i).starts_with(command)) continue;
    const size_t close = text.find('}', i);
    return close == kNone ? at : close + 1;
  }
  if (text.substr(i).starts_with("''")) return i + 2;
  if (i < text.size() && (text[i] == '"' || text[i] == '\'')) return i + 1;
  const size_t begin = i;
  while (i < text.size() && (IsAsciiLetter(text[i]) || static_cast<unsigned char>(text[i]) >= 0x80)) ++i;
  return i > begin ? i : at;
}

}  // namespace

string_view QuantityUpTo(string_view text, size_t number_end) {
  const size_t end = UnitEnd(text, number_end);
  const size_t from = number_end > kQuantityBytes ? number_end - kQuantityBytes : 0;
  for (size_t i = from; i < number_end; ++i) {
    const bool inside = i > 0 && (IsAsciiDigit(text[i - 1]) || string_view(".,/").find(text[i - 1]) != kNone);
    if (!IsAsciiDigit(text[i]) || inside) continue;
    for (const size_t stop : {end, number_end}) {  // "2h30" has no unit behind
      const string_view value = text.substr(i, stop - i);
      if (!IsCompound(value)) continue;
      const bool opens = i > 0 && text[i - 1] == '$' && std::count(value.begin(), value.end(), '$') % 2 == 1;
      return opens ? text.substr(i - 1, stop - i + 1) : value;
    }
  }
  return "";
}

string_view LeadingQuantity(string_view text) {
  const size_t first = text.starts_with('$') ? 1 : 0;
  if (first >= text.size() || !IsAsciiDigit(text[first])) return "";
  text = text.substr(0, 2 * kQuantityBytes);
  string_view longest;
  for (size_t i = first + 1; i < text.size(); ++i) {
    if (!IsAsciiDigit(text[i - 1]) || IsAsciiDigit(text[i])) continue;
    const size_t end = UnitEnd(text, i);
    if (IsCompound(text.substr(first, end - first))) longest = text.substr(0, end);
  }
  return longest;
}

string_view LeadingRatio(string_view sentence) {
  const auto digits = [&](size_t at) {
    while (at < sentence.size() && (IsAsciiDigit(sentence[at]) || (sentence[at] == '.' && at + 1 < sentence.size() &&
                                                                   IsAsciiDigit(sentence[at + 1]))))
      ++at;
    return at;
  };
  const size_t first = digits(0);
  if (first == 0 || !sentence.substr(first).starts_with(" to ")) return "";
  const size_t end = digits(first + 4);
  const bool goes_on = end < sentence.size() && !IsAsciiSpace(sentence[end]) && sentence[end] != ',';
  return end > first + 4 && !goes_on ? sentence.substr(0, end) : string_view();
}

}  // namespace iha::scoring::math
