#include "benchmarks/scoring/hendrycks.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "benchmarks/scoring/python_int.h"
#include "common/text.h"

namespace iha::scoring {
namespace {

std::string ReplaceAll(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  size_t pos = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, pos)) {
    out.append(text.substr(pos, at - pos)).append(with);
    pos = at + what.size();
  }
  return out.append(text.substr(pos));
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  size_t pos = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator, pos)) {
    parts.push_back(text.substr(pos, at - pos));
    pos = at + separator.size();
  }
  parts.push_back(text.substr(pos));
  return parts;
}

// Bytes of the first character; invalid UTF-8 counts byte by byte.
size_t CharacterBytes(std::string_view text) { return std::max<size_t>(Utf8Length(text, nullptr), 1); }

size_t CharacterCount(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); text.remove_prefix(CharacterBytes(text))) ++count;
  return count;
}

// "\text{ " is taken for a unit and cut with all behind it; two of them raise.
std::optional<std::string> WithoutUnits(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, "\\text{ ");
  if (parts.size() > 2) return std::nullopt;
  return std::string(parts.front());
}

// \sqrt3 -> \sqrt{3}
std::optional<std::string> WithSqrtBraces(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, "\\sqrt");
  std::string out(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    out += "\\sqrt";
    if (part.front() == '{') {
      out += part;
      continue;
    }
    const size_t bytes = CharacterBytes(part);
    out.append("{").append(part.substr(0, bytes)).append("}").append(part.substr(bytes));
  }
  return out;
}

// \frac12 -> \frac{1}{2}, \frac1{2} -> \frac{1}{2}. A single character behind \frac gives the text back unchanged.
std::optional<std::string> WithFracBraces(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, "\\frac");
  std::string out(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.empty()) return std::nullopt;
    out += "\\frac";
    if (part.front() == '{') {
      out += part;
      continue;
    }
    const std::string_view a = part.substr(0, CharacterBytes(part));
    std::string_view rest = part.substr(a.size());
    if (rest.empty()) return std::string(text);
    out.append("{").append(a).append("}");
    if (rest.front() != '{') {
      const std::string_view b = rest.substr(0, CharacterBytes(rest));
      out.append("{").append(b).append("}");
      rest.remove_prefix(b.size());
    }
    out += rest;
  }
  return out;
}

// a/b -> \frac{a}{b} for integers as Python writes them. Integers in another spelling stay; all else raises.
std::optional<std::string> WithSlashAsFrac(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, "/");
  if (parts.size() != 2) return std::string(text);
  if (!IsPythonInt(parts[0]) || !IsPythonInt(parts[1])) return std::nullopt;
  if (!IsCanonicalInt(parts[0]) || !IsCanonicalInt(parts[1])) return std::string(text);
  return std::string("\\frac{").append(parts[0]).append("}{").append(parts[1]).append("}");
}

// x=5 -> 5 when what stands before the only "=" has at most two characters.
std::string WithoutShortName(std::string text) {
  const std::vector<std::string_view> parts = Split(text, "=");
  if (parts.size() != 2 || CharacterCount(parts[0]) > 2) return text;
  return std::string(parts[1]);
}

}  // namespace

std::optional<std::string> HendrycksStrip(std::string_view answer) {
  static constexpr std::string_view kReplacements[][2] = {
      {"\n", ""},     {"\\!", ""},     {"\\\\", "\\"},    {"tfrac", "frac"}, {"dfrac", "frac"},
      {"\\left", ""}, {"\\right", ""}, {"^{\\circ}", ""}, {"^\\circ", ""},   {"\\$", ""},
  };
  std::string text(answer);
  for (const auto& [what, with] : kReplacements) text = ReplaceAll(text, what, with);
  std::optional<std::string> unitless = WithoutUnits(text);
  if (!unitless.has_value()) return std::nullopt;
  text = ReplaceAll(*unitless, "\\%", "");
  text = ReplaceAll(text, " .", " 0.");
  text = ReplaceAll(text, "{.", "{0.");
  if (text.empty()) return text;
  if (text.front() == '.') text.insert(text.begin(), '0');
  text = WithoutShortName(std::move(text));
  std::optional<std::string> roots = WithSqrtBraces(text);
  if (!roots.has_value()) return std::nullopt;
  std::optional<std::string> fractions = WithFracBraces(ReplaceAll(*roots, " ", ""));
  if (!fractions.has_value()) return std::nullopt;
  if (*fractions == "0.5") return "\\frac{1}{2}";
  return WithSlashAsFrac(*fractions);
}

bool HendrycksEquivalent(std::string_view a, std::string_view b) {
  const std::optional<std::string> strip_a = HendrycksStrip(a);
  const std::optional<std::string> strip_b = HendrycksStrip(b);
  if (!strip_a.has_value() || !strip_b.has_value()) return a == b;
  return *strip_a == *strip_b;
}

std::string_view HendrycksAnswer(std::string_view output) {
  const size_t first = output.find('$');
  const size_t last = output.rfind('$');
  if (first == last) return output;  // none, or one
  return output.substr(first + 1, last - first - 1);
}

std::optional<std::string> LastBoxed(std::string_view text) {
  constexpr std::string_view kSpaced = "\\boxed ";
  if (const size_t at = text.rfind(kSpaced); at != std::string_view::npos) {
    const std::string_view inside = text.substr(at + kSpaced.size());
    return std::string(kSpaced).append(inside.substr(0, inside.find('$')));
  }
  size_t begin = text.rfind("\\boxed");
  if (begin == std::string_view::npos) begin = text.rfind("\\fbox");
  if (begin == std::string_view::npos) return std::nullopt;
  int64_t open = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{') ++open;
    // An unmatched } makes the count negative and never zero again by itself, as in that code.
    if (text[i] == '}' && --open == 0) return std::string(text.substr(begin, i + 1 - begin));
  }
  return std::nullopt;
}

std::optional<std::string> RemoveBoxed(std::string_view boxed) {
  constexpr std::string_view kSpaced = "\\boxed ", kBraced = "\\boxed{";
  if (boxed.starts_with(kSpaced)) return std::string(boxed.substr(kSpaced.size()));
  if (boxed.find(kSpaced) != std::string_view::npos) return std::nullopt;
  if (!boxed.starts_with(kBraced) || !boxed.ends_with('}')) return std::nullopt;
  boxed.remove_prefix(kBraced.size());
  return std::string(boxed.substr(0, boxed.size() - 1));
}

}  // namespace iha::scoring
