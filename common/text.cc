#include "common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace iha {
namespace {

bool SteersTerminal(char32_t c) {
  return (c >= 0x80 && c < 0xA0) || c == 0x2028 || c == 0x2029 ||  // C1 controls; line, paragraph separators
         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x200E || c == 0x200F ||  // bidirectional
         c == 0xFEFF;
}

void AppendEscapedAscii(unsigned char c, std::string* out) {
  switch (c) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(*out), "\\x{:02X}", c);
  }
}

}  // namespace

size_t Utf8Length(std::string_view text, char32_t* code_point) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    if (code_point != nullptr) *code_point = lead;
    return 1;
  }
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  char32_t value = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
  if (code_point != nullptr) *code_point = value;
  return length;
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text, nullptr);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string TerminalSafe(std::string_view text, size_t max_bytes) {
  std::string out;
  const size_t limit = max_bytes == 0 ? text.size() : max_bytes;
  size_t at = 0;
  while (at < text.size()) {
    char32_t c = 0;
    const size_t length = Utf8Length(text.substr(at), &c);
    if (at + std::max<size_t>(length, 1) > limit) return out + "...";
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02X}", static_cast<unsigned char>(text[at]));
    } else if (c < 0x20 || c == 0x7F) {
      AppendEscapedAscii(static_cast<unsigned char>(c), &out);
    } else if (SteersTerminal(c)) {
      fmt::format_to(std::back_inserter(out), "\\u{{{:X}}}", static_cast<uint32_t>(c));
    } else {
      out.append(text, at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return out;
}

}  // namespace iha
