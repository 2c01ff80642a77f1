#include "benchmarks/ruler/text.h"

#include <algorithm>

#include "benchmarks/scoring/python_text.h"
#include "common/text.h"

namespace iha::benchmarks::ruler {
namespace {

// Calls visit(begin, end, character) for each character.
template <class Visit>
void ForEachCharacter(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    char32_t c = static_cast<unsigned char>(text[at]);
    const size_t length = c < 0x80 ? 1 : std::max<size_t>(1, Utf8Length(text.substr(at), &c));
    visit(at, at + length, c);
    at += length;
  }
}

}  // namespace

int64_t CountWords(std::string_view text) {
  int64_t words = 0;
  bool in_word = false;
  ForEachCharacter(text, [&](size_t, size_t, char32_t c) {
    const bool space = scoring::IsPythonSpace(c);
    if (!space && !in_word) ++words;
    in_word = !space;
  });
  return words;
}

std::string CollapseSpace(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_space = false;
  ForEachCharacter(text, [&](size_t begin, size_t end, char32_t c) {
    const bool space = scoring::IsPythonSpace(c);
    if (!space) out.append(text, begin, end - begin);
    if (space && !in_space) out += ' ';
    in_space = space;
  });
  return out;
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, begin)) {
    out.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  return out.append(text, begin);
}

int64_t CountCharacters(std::string_view text) {
  int64_t count = 0;
  ForEachCharacter(text, [&](size_t, size_t, char32_t) { ++count; });
  return count;
}

std::u32string ToCodePoints(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  ForEachCharacter(text, [&](size_t, size_t, char32_t c) { out += c; });
  return out;
}

}  // namespace iha::benchmarks::ruler
