// unicode.h: UTF-8 walking, the character classes that Rust's char and regex crates use, normal forms, GPT-2's byte
// alphabet. Pure; thread: any. Functions that take "valid" text must be given valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace iha::tokenizer {

// The code point at the start of valid non-empty `text`, and its length in bytes.
struct CodePoint {
  char32_t value;
  size_t length;
};
inline CodePoint FirstChar(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char b = byte(0);
  if (b < 0x80) return {b, 1};
  if (b < 0xE0) return {static_cast<char32_t>((b & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  if (b < 0xF0) return {static_cast<char32_t>((b & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)), 3};
  return {static_cast<char32_t>((b & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F)),
          4};
}
// Start of the last character of valid non-empty text.
size_t LastCharStart(std::string_view text);
void AppendUtf8(char32_t c, std::string* out);

// Appends `bytes` with each maximal broken part as U+FFFD (Rust's from_utf8_lossy). Unless `final`, an unfinished but
// so far well-formed sequence at the end is left alone. Returns how many bytes were consumed.
size_t AppendLossy(std::string_view bytes, bool final, std::string* out);

bool IsWhiteSpace(char32_t c);   // White_Space: Rust's is_whitespace and \s
bool IsNumeric(char32_t c);      // Nd, Nl, No: Rust's is_numeric
bool IsWord(char32_t c);         // \w of the regex crate: Alphabetic, M, Nd, Pc, Join_Control
bool IsPunctuation(char32_t c);  // P and the ASCII symbols: Punctuation pre-tokenizer
bool IsMark(char32_t c);         // Mn, Mc, Me
void AppendLower(char32_t c, std::string* out);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string Normalize(std::string_view valid, NormalForm form);

// GPT-2's alphabet: every byte has a printable character (U+0021..U+0143).
char32_t ByteToChar(uint8_t byte);
// -1 if `c` stands for no byte.
int CharToByte(char32_t c);
void AppendByteAlphabet(std::string_view bytes, std::string* out);
size_t ByteAlphabetLength(std::string_view bytes);

}  // namespace iha::tokenizer
