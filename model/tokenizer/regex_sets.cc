#include "model/tokenizer/regex_sets.h"

#include <array>
#include <utility>

namespace iha::tokenizer {
namespace {

// Unicode's White_Space. PCRE2's own \s adds U+180E.
constexpr const char* kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr const char* kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr const char* kDigit = "\\p{Nd}";
constexpr const char* kHex = "0-9A-Fa-f";

std::string Squeezed(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

constexpr std::array<std::pair<const char*, const char*>, 16> kPosix = {{
    {"space", kSpace},
    {"whitespace", kSpace},
    {"word", kWord},
    {"digit", kDigit},
    {"xdigit", kHex},
    {"alpha", "\\p{Alphabetic}"},
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"upper", "\\p{Uppercase}"},
    {"lower", "\\p{Lowercase}"},
    {"blank", "\\x{9}\\p{Zs}"},
    {"cntrl", "\\p{Cc}"},
    {"punct", "\\p{P}\\x{24}\\x{2b}\\x{3c}-\\x{3e}\\x{5e}\\x{60}\\x{7c}\\x{7e}"},
    {"ascii", "\\x{0}-\\x{7f}"},
    {"any", "\\x{0}-\\x{10ffff}"},
    {"alphabetic", "\\p{Alphabetic}"},
    {"assigned", "\\P{Cn}"},
}};

constexpr std::array<std::pair<const char*, const char*>, 45> kCategories = {{
    {"letter", "L"},
    {"casedletter", "L&"},
    {"lc", "L&"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"surrogate", "Cs"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
    {"uppercase", "Uppercase"},
    {"lowercase", "Lowercase"},
    {"emoji", "Emoji"},
    {"extendedpictographic", "Extended_Pictographic"},
    {"ideographic", "Ideographic"},
}};

constexpr std::array<const char*, 37> kShort = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn"};

}  // namespace

std::optional<CharSet> EscapeSet(char letter) {
  switch (letter) {
    case 's':
    case 'S':
      return CharSet{kSpace, letter == 'S'};
    case 'w':
    case 'W':
      return CharSet{kWord, letter == 'W'};
    case 'd':
    case 'D':
      return CharSet{kDigit, letter == 'D'};
    case 'h':
    case 'H':
      return CharSet{kHex, letter == 'H'};
    default:
      return std::nullopt;
  }
}

std::optional<CharSet> PosixSet(std::string_view name) {
  const bool negated = name.starts_with('^');
  const std::string key = Squeezed(name.substr(negated ? 1 : 0));
  for (const auto& [posix, items] : kPosix) {
    if (key == posix) return CharSet{items, negated};
  }
  return std::nullopt;
}

CharSet PropertySet(std::string_view name) {
  if (const std::optional<CharSet> posix = PosixSet(name)) return *posix;
  const bool negated = name.starts_with('^');
  const std::string key = Squeezed(name.substr(negated ? 1 : 0));
  for (const char* category : kShort) {
    if (key == Squeezed(category)) return {"\\p{" + std::string(category) + "}", negated};
  }
  for (const auto& [category, pcre] : kCategories) {
    if (key == category) return {"\\p{" + std::string(pcre) + "}", negated};
  }
  return {"\\p{sc:" + key + "}", negated};
}

}  // namespace iha::tokenizer
