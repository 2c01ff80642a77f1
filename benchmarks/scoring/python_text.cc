#include "benchmarks/scoring/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "common/text.h"

namespace iha::scoring {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kCapitalIWithDot = 0x130;
// A byte that is no UTF-8 is carried through as this plus its value: no character has such a number.
constexpr char32_t kBrokenByte = 0x80000000;

std::vector<char32_t> Characters(std::string_view text) {
  std::vector<char32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    char32_t c = 0;
    const size_t bytes = Utf8Length(text, &c);
    characters.push_back(bytes > 0 ? c : kBrokenByte + static_cast<unsigned char>(text.front()));
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return characters;
}

void Append(std::string& out, char32_t c) {
  if (c >= kBrokenByte) {
    out.push_back(static_cast<char>(c - kBrokenByte));
    return;
  }
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

utf8proc_category_t CategoryOf(char32_t c) {
  return c >= kBrokenByte ? UTF8PROC_CATEGORY_CN : utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Unicode's Cased, but for characters that are case-ignorable too: those are skipped before this is asked.
bool IsCased(char32_t c) {
  const utf8proc_category_t k = CategoryOf(c);
  if (k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT) return true;
  return c == 0xAA || c == 0xBA || (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9) ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

// Unicode's Case_Ignorable: marks, formats, modifiers, and what a word may hold in its middle.
bool IsCaseIgnorable(char32_t c) {
  constexpr std::u32string_view kInsideWords =
      U"':.\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027"
      U"\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  const utf8proc_category_t k = CategoryOf(c);
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || kInsideWords.find(c) != kInsideWords.npos;
}

// Behind a cased letter and before none, case-ignorable characters between them left out.
bool EndsWord(const std::vector<char32_t>& text, size_t sigma) {
  size_t before = sigma;
  while (before > 0 && IsCaseIgnorable(text[before - 1])) --before;
  if (before == 0 || !IsCased(text[before - 1])) return false;
  size_t after = sigma + 1;
  while (after < text.size() && IsCaseIgnorable(text[after])) ++after;
  return after == text.size() || !IsCased(text[after]);
}

}  // namespace

bool IsPythonSpace(char32_t c) {
  if (c >= kBrokenByte) return false;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  return property->category == UTF8PROC_CATEGORY_ZS || property->bidi_class == UTF8PROC_BIDI_CLASS_WS ||
         property->bidi_class == UTF8PROC_BIDI_CLASS_B || property->bidi_class == UTF8PROC_BIDI_CLASS_S;
}

bool IsPythonDigit(char32_t c) { return CategoryOf(c) == UTF8PROC_CATEGORY_ND; }

bool IsPythonWord(char32_t c) {
  if (c == U'_') return true;
  const utf8proc_category_t category = CategoryOf(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

std::string_view PythonRstrip(std::string_view text) {
  size_t kept = 0;
  for (size_t at = 0; at < text.size();) {
    char32_t c = 0;
    const size_t bytes = Utf8Length(text.substr(at), &c);
    at += std::max<size_t>(bytes, 1);
    if (bytes == 0 || !IsPythonSpace(c)) kept = at;
  }
  return text.substr(0, kept);
}

std::string_view PythonStrip(std::string_view text) {
  while (!text.empty()) {
    char32_t c = 0;
    const size_t bytes = Utf8Length(text, &c);
    if (bytes == 0 || !IsPythonSpace(c)) break;
    text.remove_prefix(bytes);
  }
  return PythonRstrip(text);
}

std::string PythonLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) {
    for (const char c : text) out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
    return out;
  }
  const std::vector<char32_t> characters = Characters(text);
  for (size_t i = 0; i < characters.size(); ++i) {
    const char32_t c = characters[i];
    if (c == kCapitalSigma) {
      Append(out, EndsWord(characters, i) ? kFinalSigma : kSmallSigma);
    } else if (c == kCapitalIWithDot) {
      out += "i\u0307";
    } else {
      Append(out, c >= kBrokenByte ? c : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

}  // namespace iha::scoring
