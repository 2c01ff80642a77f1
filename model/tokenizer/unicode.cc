#include "model/tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>

namespace iha::tokenizer {
namespace {

// Table 3-7 of the Unicode standard: the second byte's range depends on the first. Returns the length of the sequence
// that `lead` opens, 0 if it opens none.
size_t SequenceLength(unsigned char lead, unsigned char* low, unsigned char* high) {
  *low = 0x80;
  *high = 0xBF;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) {
    if (lead == 0xE0) *low = 0xA0;
    if (lead == 0xED) *high = 0x9F;
    return 3;
  }
  if (lead == 0xF0) *low = 0x90;
  if (lead == 0xF4) *high = 0x8F;
  return 4;
}

struct Alphabet {
  std::array<char32_t, 256> chars{};
  std::array<int16_t, 0x144> bytes{};
  std::array<std::string, 256> utf8;

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      chars[b] = printable ? static_cast<char32_t>(b) : next++;
      bytes[chars[b]] = static_cast<int16_t>(b);
      AppendUtf8(chars[b], &utf8[b]);
    }
  }
};
const Alphabet& ByteAlphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

struct Range {
  char32_t first;
  char32_t last;
};
// In order, so that the search can stop early.
template <size_t N>
bool InRanges(char32_t c, const Range (&ranges)[N]) {
  for (const Range& range : ranges) {
    if (c <= range.last) return c >= range.first;
  }
  return false;
}

// What utf8proc 2.8 (Unicode 15) lacks of the crates' newer tables.
constexpr Range kNewNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9},
                                 {0x11DE0, 0x11DE9}, {0x16130, 0x16139}, {0x16D70, 0x16D79},
                                 {0x16FF4, 0x16FF6}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
constexpr Range kNewWord[] = {{0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},
                              {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
                              {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
                              {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2},
                              {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
                              {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
                              {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79},
                              {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9}, {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};
// Upper-case letters: the next one is the lower case, in the last two scripts the one 0x20 and 0x1B after it.
constexpr Range kNewUpper[] = {{0x1C89, 0x1C89}, {0xA7CC, 0xA7CC}, {0xA7CE, 0xA7CE},   {0xA7D2, 0xA7D2},
                               {0xA7D4, 0xA7D4}, {0xA7DA, 0xA7DA}, {0x10D50, 0x10D65}, {0x16EA0, 0x16EB8}};
// Where the older tables behind is_punctuation and is_combining_mark say the opposite of utf8proc's.
constexpr Range kOtherPunctuation[] = {
    {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0x166D, 0x166D},   {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},   {0x10EAD, 0x10EAD},
    {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x111C9, 0x111C9}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B},
    {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946},
    {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09},
    {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF},
    {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};
constexpr Range kOtherMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},     {0xCF3, 0xCF3},     {0xD00, 0xD00},
    {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},
    {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF2, 0x1CF3},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2},
    {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241}, {0x1133B, 0x1133B},
    {0x1145E, 0x1145E}, {0x1182C, 0x1183A}, {0x11930, 0x11935}, {0x11937, 0x11938}, {0x1193B, 0x1193E},
    {0x11940, 0x11940}, {0x11942, 0x11943}, {0x119D1, 0x119D7}, {0x119DA, 0x119E0}, {0x119E4, 0x119E4},
    {0x11A01, 0x11A0A}, {0x11A33, 0x11A39}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A5B},
    {0x11A8A, 0x11A99}, {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45},
    {0x11D47, 0x11D47}, {0x11D8A, 0x11D8E}, {0x11D90, 0x11D91}, {0x11D93, 0x11D97}, {0x11EF3, 0x11EF6},
    {0x11F00, 0x11F01}, {0x11F03, 0x11F03}, {0x11F34, 0x11F3A}, {0x11F3E, 0x11F42}, {0x13440, 0x13440},
    {0x13447, 0x13455}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FE4}, {0x16FF0, 0x16FF1},
    {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};
// What their older normalization tables leave alone: no compatibility form.
constexpr Range kNoCompatibility[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},
                                      {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
                                      {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// Younger than those tables: marks that are starters to them, so that nothing is moved across, and the second half of a
// letter that they do not compose.
constexpr Range kNoClass[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};

utf8proc_category_t Category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool LeftAlone(char32_t c, NormalForm form) {
  if (c < kNoClass[0].first) return false;
  const bool compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  return InRanges(c, kNoClass) || (compatibility && InRanges(c, kNoCompatibility));
}

// Below these no character changes under the form, so ordinary English never reaches the library.
bool Unchanged(std::string_view valid, NormalForm form) {
  const bool composed = form == NormalForm::kNfc;
  for (size_t i = 0; i < valid.size();) {
    const CodePoint c = FirstChar(valid.substr(i));
    if (c.value >= (composed ? 0x300u : 0x80u)) return false;
    i += c.length;
  }
  return true;
}

void AppendNormalized(std::string_view valid, NormalForm form, std::string* out) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* buffer = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()), static_cast<utf8proc_ssize_t>(valid.size()),
                   &buffer, static_cast<utf8proc_option_t>(options));
  if (length < 0) std::abort();  // Valid UTF-8 leaves it one way to fail: no memory.
  out->append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(length));
  std::free(buffer);
}

}  // namespace

size_t LastCharStart(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
  return i;
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

size_t AppendLossy(std::string_view bytes, bool final, std::string* out) {
  size_t i = 0;
  while (i < bytes.size()) {
    unsigned char low, high;
    const size_t length = SequenceLength(static_cast<unsigned char>(bytes[i]), &low, &high);
    size_t good = length == 0 ? 0 : 1;
    while (good > 0 && good < length && i + good < bytes.size()) {
      const auto b = static_cast<unsigned char>(bytes[i + good]);
      if (b < low || b > high) break;
      low = 0x80;
      high = 0xBF;
      ++good;
    }
    if (length != 0 && good == length) {
      out->append(bytes.substr(i, length));
      i += length;
    } else if (!final && good > 0 && i + good == bytes.size()) {
      return i;
    } else {
      out->append("\xEF\xBF\xBD");
      i += good == 0 ? 1 : good;
    }
  }
  return i;
}

bool IsWhiteSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsNumeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t k = Category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO ||
         InRanges(c, kNewNumbers);
}

bool IsMark(char32_t c) {
  if (c < 0x300) return false;
  const utf8proc_category_t k = Category(c);
  const bool mark = k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
  return mark != InRanges(c, kOtherMarks);
}

bool IsWord(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // Join_Control, and what of Other_Alphabetic is no mark: circled and squared letters.
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
             (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || InRanges(c, kNewWord);
  }
}

bool IsPunctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  }
  const utf8proc_category_t k = Category(c);
  return (k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO) != InRanges(c, kOtherPunctuation);
}

void AppendLower(char32_t c, std::string* out) {
  if (c == 0x130) {  // The one character whose lower case is two.
    out->append("i\xCC\x87");
    return;
  }
  if (c == 0xA7CB || c == 0xA7DC) {
    c = c == 0xA7CB ? 0x264 : 0x19B;
  } else if (InRanges(c, kNewUpper)) {
    c += c < 0x10D50 ? 1 : c < 0x16EA0 ? 0x20 : 0x1B;
  }
  AppendUtf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

std::string Normalize(std::string_view valid, NormalForm form) {
  if (Unchanged(valid, form)) return std::string(valid);
  std::string out;
  size_t done = 0;
  for (size_t i = 0; i < valid.size();) {
    const CodePoint c = FirstChar(valid.substr(i));
    if (LeftAlone(c.value, form)) {
      AppendNormalized(valid.substr(done, i - done), form, &out);
      out += valid.substr(i, c.length);
      done = i + c.length;
    }
    i += c.length;
  }
  AppendNormalized(valid.substr(done), form, &out);
  return out;
}

char32_t ByteToChar(uint8_t byte) { return ByteAlphabet().chars[byte]; }

int CharToByte(char32_t c) { return c < ByteAlphabet().bytes.size() ? ByteAlphabet().bytes[c] : -1; }

void AppendByteAlphabet(std::string_view bytes, std::string* out) {
  const Alphabet& alphabet = ByteAlphabet();
  for (const char b : bytes) out->append(alphabet.utf8[static_cast<unsigned char>(b)]);
}

size_t ByteAlphabetLength(std::string_view bytes) {
  const Alphabet& alphabet = ByteAlphabet();
  size_t length = 0;
  for (const char b : bytes) length += alphabet.utf8[static_cast<unsigned char>(b)].size();
  return length;
}

}  // namespace iha::tokenizer
