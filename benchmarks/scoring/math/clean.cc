#include "benchmarks/scoring/math/clean.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "benchmarks/scoring/math/markup.h"
#include "benchmarks/scoring/math/words.h"
#include "common/text.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

const std::unordered_map<char32_t, const char*>& Symbols() {
  static const auto* const kMap = new std::unordered_map<char32_t, const char*>{{U'\u2212', "-"},
                                                                                {U'\u2010', "-"},
                                                                                {U'\u2011', "-"},
                                                                                {U'\u2012', "-"},
                                                                                {U'\u2013', "-"},
                                                                                {U'\u2014', "-"},
                                                                                {U'\uFF0D', "-"},
                                                                                {U'\uFF0B', "+"},
                                                                                {U'\uFF1D', "="},
                                                                                {U'\uFF0C', ","},
                                                                                {U'\u3001', ","},
                                                                                {U'\u060C', ","},
                                                                                {U'\uFF1B', ";"},
                                                                                {U'\uFF1A', ":"},
                                                                                {U'\uFF08', "("},
                                                                                {U'\uFF09', ")"},
                                                                                {U'\uFF3B', "["},
                                                                                {U'\uFF3D', "]"},
                                                                                {U'\uFF0F', "/"},
                                                                                {U'\uFF05', "\\% "},
                                                                                {U'\u066A', "\\% "},
                                                                                {U'\u3002', "."},
                                                                                {U'\uFF0E', "."},
                                                                                {U'\u066B', "."},
                                                                                {U'\u066C', ","},
                                                                                {U'\uFF5C', "|"},
                                                                                {U'\uFF1C', "<"},
                                                                                {U'\uFF1E', ">"},
                                                                                {U'\u00D7', "\\times "},
                                                                                {U'\u00F7', "\\div "},
                                                                                {U'\u22C5', "\\cdot "},
                                                                                {U'\u00B7', "\\cdot "},
                                                                                {U'\u2219', "\\cdot "},
                                                                                {U'\u2217', "*"},
                                                                                {U'\u00B1', "\\pm "},
                                                                                {U'\u2213', "\\mp "},
                                                                                {U'\u221A', "\\sqrt "},
                                                                                {U'\u221B', "\\cbrt "},
                                                                                {U'\u221E', "\\infty "},
                                                                                {U'\u2264', "\\le "},
                                                                                {U'\u2265', "\\ge "},
                                                                                {U'\u2A7D', "\\le "},
                                                                                {U'\u2A7E', "\\ge "},
                                                                                {U'\u2260', "\\ne "},
                                                                                {U'\u2248', "\\approx "},
                                                                                {U'\u2243', "\\approx "},
                                                                                {U'\u2245', "\\cong "},
                                                                                {U'\u2261', "\\equiv "},
                                                                                {U'\u2208', "\\in "},
                                                                                {U'\u2209', "\\notin "},
                                                                                {U'\u222A', "\\cup "},
                                                                                {U'\u2229', "\\cap "},
                                                                                {U'\u2216', "\\setminus "},
                                                                                {U'\u2205', "\\emptyset "},
                                                                                {U'\u00B0', "^\\circ "},
                                                                                {U'\u00BA', "^\\circ "},
                                                                                {U'\u2220', "\\angle "},
                                                                                {U'\u25B3', "\\triangle "},
                                                                                {U'\u2032', "'"},
                                                                                {U'\u2033', "''"},
                                                                                {U'\u00A2', "\\text{cents}"},
                                                                                {U'\u2026', "\\dots "},
                                                                                {U'\u22EF', "\\dots "},
                                                                                {U'\u2192', "\\to "},
                                                                                {U'\u2223', "\\mid "},
                                                                                {U'\u27E8', "\\langle "},
                                                                                {U'\u27E9', "\\rangle "},
                                                                                {U'\u230A', "\\lfloor "},
                                                                                {U'\u230B', "\\rfloor "},
                                                                                {U'\u2308', "\\lceil "},
                                                                                {U'\u2309', "\\rceil "},
                                                                                {U'\u2211', "\\sum "},
                                                                                {U'\u220F', "\\prod "},
                                                                                {U'\u222B', "\\int "},
                                                                                {U'\u211D', "\\mathbb{R} "},
                                                                                {U'\u2124', "\\mathbb{Z} "},
                                                                                {U'\u2115', "\\mathbb{N} "},
                                                                                {U'\u211A', "\\mathbb{Q} "},
                                                                                {U'\u2102', "\\mathbb{C} "},
                                                                                {U'\u00BD', "\\frac{1}{2} "},
                                                                                {U'\u2153', "\\frac{1}{3} "},
                                                                                {U'\u2154', "\\frac{2}{3} "},
                                                                                {U'\u00BC', "\\frac{1}{4} "},
                                                                                {U'\u00BE', "\\frac{3}{4} "},
                                                                                {U'\u2155', "\\frac{1}{5} "},
                                                                                {U'\u2159', "\\frac{1}{6} "},
                                                                                {U'\u215B', "\\frac{1}{8} "},
                                                                                {U'\u215C', "\\frac{3}{8} "},
                                                                                {U'\u215D', "\\frac{5}{8} "},
                                                                                {U'\u215E', "\\frac{7}{8} "},
                                                                                {U'\u2044', "/"},
                                                                                {U'\u20AC', "\\$ "},
                                                                                {U'\u00A3', "\\$ "},
                                                                                {U'\u00A5', "\\$ "},
                                                                                {U'\u20B9', "\\$ "},
                                                                                {U'\u20BD', "\\$ "},
                                                                                {U'\u20A9', "\\$ "},
                                                                                {U'\u20AB', "\\$ "},
                                                                                {U'\u20BA', "\\$ "},
                                                                                {U'\u20B4', "\\$ "},
                                                                                {U'\u20A6', "\\$ "},
                                                                                {U'\u0E3F', "\\$ "},
                                                                                {U'\u2236', ":"},
                                                                                {U'\u00A0', " "},
                                                                                {U'\u2009', "\\,"},
                                                                                {U'\u202F', "\\,"},
                                                                                {U'\u2003', " "},
                                                                                {U'\u2002', " "},
                                                                                {U'\u3000', " "},
                                                                                {U'\u200B', ""},
                                                                                {U'\u2061', ""},
                                                                                {U'\u2062', ""},
                                                                                {U'\uFEFF', ""},
                                                                                {U'\u2234', ""},
                                                                                {U'\u2018', "'"},
                                                                                {U'\u2019', "'"},
                                                                                {U'\u201C', "\""},
                                                                                {U'\u201D', "\""},
                                                                                {U'\u2225', "\\parallel "},
                                                                                {U'\u22A5', "\\perp "},
                                                                                {U'\u2282', "\\subset "},
                                                                                {U'\u2286', "\\subseteq "},
                                                                                {U'\u2044', "/"},
                                                                                {U'\u2215', "/"}};
  return *kMap;
}

constexpr std::array<string_view, 25> kGreekLower = {
    "alpha", "beta",   "gamma",   "delta", "epsilon", "zeta",    "eta",  "theta", "iota",
    "kappa", "lambda", "mu",      "nu",    "xi",      "omicron", "pi",   "rho",   "varsigma",
    "sigma", "tau",    "upsilon", "phi",   "chi",     "psi",     "omega"};
constexpr std::array<std::pair<char32_t, string_view>, 8> kGreekUpper = {{{U'\u0393', "Gamma"},
                                                                          {U'\u0394', "Delta"},
                                                                          {U'\u0398', "Theta"},
                                                                          {U'\u039B', "Lambda"},
                                                                          {U'\u03A0', "Pi"},
                                                                          {U'\u03A3', "Sigma"},
                                                                          {U'\u03A6', "Phi"},
                                                                          {U'\u03A9', "Omega"}}};
// First digit of each script that writes numbers in tens.
constexpr std::array<char32_t, 9> kDigitZeros = {U'\u0660', U'\u06F0', U'\u0966', U'\u09E6', U'\u0E50',
                                                 U'\u0C66', U'\u0BE6', U'\uFF10', U'\u0AE6'};

// 0..9 for a raised digit, -1 for none.
int Raised(char32_t c) {
  if (c == U'\u2070') return 0;
  if (c == U'\u00B9') return 1;
  if (c == U'\u00B2') return 2;
  if (c == U'\u00B3') return 3;
  return c >= U'\u2074' && c <= U'\u2079' ? static_cast<int>(c - U'\u2070') : -1;
}

// Raised and lowered digits become ^{..} and _{..}; returns the bytes read, 0 when there are none at `pos`.
size_t Scripts(string_view text, size_t pos, std::string& out) {
  size_t at = pos;
  std::string digits;
  int which = 0;  // 1 raised, 2 lowered
  while (at < text.size()) {
    char32_t c = 0;
    const size_t length = Utf8Length(text.substr(at), &c);
    const int raised = length == 0 ? -1 : Raised(c);
    const bool minus = c == U'\u207B' && which != 2;
    const bool lowered = length != 0 && c >= U'\u2080' && c <= U'\u2089';
    if ((raised >= 0 || minus) && which != 2) {
      which = 1;
      digits += minus ? '-' : static_cast<char>('0' + raised);
    } else if (lowered && which != 1) {
      which = 2;
      digits += static_cast<char>('0' + (c - U'\u2080'));
    } else {
      break;
    }
    at += length;
  }
  if (which == 0) return 0;
  if (which == 1 && text.substr(at).starts_with("\u221A")) {
    // A raised digit in front of a root is its index.
    out += "\\sqrt[" + digits + "]";
    return at + 3 - pos;
  }
  out += which == 1 ? "^{" : "_{";
  out += digits;
  out += '}';
  return at - pos;
}

void AppendCodePoint(char32_t c, string_view raw, std::string& out) {
  if (const auto found = Symbols().find(c); found != Symbols().end()) {
    out += found->second;
    return;
  }
  if (c >= U'\u03B1' && c <= U'\u03C9') {
    out += '\\';
    out += kGreekLower[c - U'\u03B1'];
    out += ' ';
    return;
  }
  for (const auto& [code, name] : kGreekUpper) {
    if (c == code) {
      out += '\\';
      out += name;
      out += ' ';
      return;
    }
  }
  for (const char32_t zero : kDigitZeros) {
    if (c >= zero && c <= zero + 9) {
      out += static_cast<char>('0' + (c - zero));
      return;
    }
  }
  out += raw;
}

}  // namespace

std::string WithAsciiForms(string_view text) {
  const auto candidate = [](char c) { return static_cast<unsigned char>(c) >= 0xD9; };
  if (std::none_of(text.begin(), text.end(), candidate)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    char32_t c = 0;
    const size_t length = candidate(text[i]) ? Utf8Length(text.substr(i), &c) : 0;
    if (length == 0) {
      out += text[i++];
      continue;
    }
    const auto* const zero = std::find_if(kDigitZeros.begin(), kDigitZeros.end(),
                                          [c](char32_t first) { return c >= first && c <= first + 9; });
    // "\u8d1f5": minus five.
    if (c == U'\u8D1F' && i + length < text.size() && IsAsciiDigit(text[i + length])) {
      out += '-';
      i += length;
      continue;
    }
    const bool wide = c >= U'\uFF01' && c <= U'\uFF5E' && c != U'\uFF04' && c != U'\uFF3C';  // no "$", no backslash
    if (zero != kDigitZeros.end()) {
      out += static_cast<char>('0' + (c - *zero));
    } else if (wide) {
      out += static_cast<char>(c - U'\uFF01' + '!');
    } else if (c == U'\u066A' || c == U'\u066B' || c == U'\u066C') {
      out += c == U'\u066A' ? '%' : c == U'\u066B' ? '.' : ',';
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  return out;
}

std::string HalveBackslashes(string_view text) {
  size_t singles = 0;
  size_t doubles = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') continue;
    size_t end = i;
    while (end < text.size() && text[end] == '\\') ++end;
    const bool command = end < text.size() && (IsAsciiLetter(text[end]) || text[end] == '!' || text[end] == '$');
    if (command) (end - i == 1 ? singles : doubles) += 1;
    i = end;
  }
  if (doubles == 0 || singles > 0) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\\') ++i;
  }
  return out;
}

std::string CleanAnswer(string_view raw) {
  const std::string plain = PlainMarkup(HalveBackslashes(raw));
  const string_view text = plain;
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      const char next = text[i + 1];
      if (next == '"') {
        out += ' ';
      } else if (next == '(' || next == ')' || (next == '[' && (i == 0 || text[i - 1] != '\\')) || next == ']') {
        out += ' ';
      } else {
        out += c;
        out += next;
      }
      i += 2;
    } else if (c == '$' || c == '"') {
      out += ' ';
      ++i;
    } else if (const string_view three = text.substr(i, 3);
               three == "{.}" || three == "{-}" || three == "{+}" || three == "{=}" || three == "{:}") {
      out += three[1];
      i += 3;
    } else if (static_cast<unsigned char>(c) < 0x80) {
      out += c;
      ++i;
    } else if (const size_t scripts = Scripts(text, i, out)) {
      i += scripts;
    } else {
      char32_t code = 0;
      const size_t length = Utf8Length(text.substr(i), &code);
      if (length == 0) {
        ++i;  // not UTF-8: the byte means nothing
        continue;
      }
      AppendCodePoint(code, text.substr(i, length), out);
      i += length;
    }
  }
  return out;
}

std::string TextKey(string_view text) {
  std::string words;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      // Formatting commands go, others stay as words.
      size_t end = i + 1;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      const string_view name = text.substr(i + 1, end - i - 1);
      const bool dropped = name.empty() || name.starts_with("text") || name.starts_with("math") || name == "mbox" ||
                           name == "left" || name == "right" || name == "quad" || name == "operatorname" ||
                           name == "rm" || name == "bf" || name == "it";
      words += ' ';
      if (!dropped) words += name;
      words += ' ';
      i = name.empty() ? i + 1 : end - 1;
      continue;
    }
    if (c == '{' || c == '}') continue;
    const bool keep = IsAsciiLetter(c) || IsAsciiDigit(c) || static_cast<unsigned char>(c) >= 0x80 || c == '+' ||
                      c == '-' || c == '/' || c == '^' || c == '=' || c == '<' || c == '>' || c == '*';
    words += keep ? c : ' ';
  }
  const std::string lower = LowerLetters(words);
  std::string key;
  size_t pos = 0;
  while (pos < lower.size()) {
    size_t end = lower.find(' ', pos);
    if (end == string_view::npos) end = lower.size();
    const string_view word = string_view(lower).substr(pos, end - pos);
    if (!word.empty() && word != "the" && word != "a" && word != "an") {
      if (!key.empty()) key += ' ';
      key += word;
    }
    pos = end + 1;
  }
  // An answer that is only an article ("a") is that letter.
  return key.empty() ? std::string(TrimSpaces(lower)) : key;
}

}  // namespace iha::scoring::math
