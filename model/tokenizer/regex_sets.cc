#include "model/tokenizer/regex_sets.h"

#include <array>
#include <utility>

#include "model/tokenizer/unicode_additions.h"

namespace iha::tokenizer {
namespace {

// Unicode's White_Space. PCRE2's own \s adds U+180E.
constexpr const char* kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr const char* kHex = "0-9A-Fa-f";

std::string Category(const std::string& name) { return "\\p{" + name + "}" + UnicodeAdditions(name); }

// [[:word:]]. \w takes Latin-1's numbers that are no digits (superscripts, fractions), too, and no others.
std::string Word() { return "\\p{Alphabetic}\\p{Pc}" + UnicodeAdditions("L") + Category("M") + Category("Nd"); }
constexpr const char* kLatinNumbers = "\\x{b2}-\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

std::string Squeezed(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// POSIX names and their like, squeezed; nullopt for others.
std::optional<std::string> Posix(std::string_view name) {
  if (name == "space" || name == "whitespace") return kSpace;
  if (name == "word") return Word();
  if (name == "digit") return Category("Nd");
  if (name == "xdigit") return kHex;
  if (name == "alpha" || name == "alphabetic") return "\\p{Alphabetic}" + UnicodeAdditions("L");
  if (name == "alnum") return "\\p{Alphabetic}" + UnicodeAdditions("L") + Category("Nd");
  if (name == "upper" || name == "uppercase") return "\\p{Uppercase}" + UnicodeAdditions("Lu");
  if (name == "lower" || name == "lowercase") return "\\p{Lowercase}" + UnicodeAdditions("Ll");
  if (name == "blank") return "\\x{9}\\p{Zs}";
  if (name == "cntrl") return "\\p{Cc}";
  if (name == "ascii") return "\\x{0}-\\x{7f}";
  if (name == "any") return "\\x{0}-\\x{10ffff}";
  return std::nullopt;
}

constexpr std::array<std::pair<const char*, const char*>, 43> kCategories = {{
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
      return CharSet{Word() + kLatinNumbers, letter == 'W'};
    case 'd':
    case 'D':
      return CharSet{Category("Nd"), letter == 'D'};
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
  // The bracket takes symbols, too; the property of the same name does not.
  if (key == "punct") return CharSet{Category("P") + Category("S"), negated};
  if (std::optional<std::string> items = Posix(key)) return CharSet{*std::move(items), negated};
  return std::nullopt;
}

CharSet PropertySet(std::string_view name) {
  const bool negated = name.starts_with('^');
  const std::string key = Squeezed(name.substr(negated ? 1 : 0));
  if (std::optional<std::string> items = Posix(key)) return {*std::move(items), negated};
  if (key == "punct") return {Category("P"), negated};
  for (const char* category : kShort) {
    if (key == Squeezed(category)) return {Category(category), negated};
  }
  for (const auto& [category, pcre] : kCategories) {
    if (key == category) return {Category(pcre), negated};
  }
  return {"\\p{sc:" + key + "}" + (key == "han" ? UnicodeAdditions("Han") : ""), negated};
}

}  // namespace iha::tokenizer
