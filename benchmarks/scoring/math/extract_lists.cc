// Answers that stand in lists: in one line, below each other, in several boxes (extract_impl.h).
#include <algorithm>
#include <initializer_list>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLongestJoin = 60;

// The bytes of the bullet of a list, "- " or "\u2022 ", that begins at `at`, the first of its line; 0 for none.
size_t BulletAt(string_view text, size_t at) {
  const string_view before = text.substr(0, at);
  const size_t line = before.rfind('\n') + 1;
  if (before.find_first_not_of(" \t", line) != kNone) return 0;
  for (const string_view bullet : {"- ", "* ", "+ ", "\u2022 "}) {
    if (text.substr(at).starts_with(bullet)) return bullet.size();
  }
  return 0;
}

}  // namespace

bool OnlyJoins(string_view gap) {
  if (gap.size() > kLongestJoin) return false;
  for (size_t i = 0; i < gap.size();) {
    const string_view rest = gap.substr(i);
    size_t length = 0;
    for (const string_view word : {"\\text{and}",
                                   "\\text{ and }",
                                   "\\text{or}",
                                   "\\text{ or }",
                                   "\\qquad",
                                   "\\quad",
                                   "\\text{, and }",
                                   "and",
                                   "or",
                                   "\\(",
                                   "\\)",
                                   "\\[",
                                   "\\]",
                                   "\\,",
                                   "\\;",
                                   "\\ ",
                                   "\\!",
                                   "\\:",
                                   "\\text{ and}",
                                   "\\text{and }",
                                   "或",
                                   "和",
                                   "或者",
                                   "ou ",
                                   "et ",
                                   "und ",
                                   "oder ",
                                   "y ",
                                   "или ",
                                   "и "}) {
      if (rest.starts_with(word)) length = std::max(length, word.size());
    }
    if (length == 0) length = BulletAt(gap, i);
    if (length == 0 && (IsAsciiSpace(rest[0]) || string_view("$,;.&*").find(rest[0]) != kNone)) length = 1;
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string InOneLine(string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t bullet = text[i] == '\n' && i > 0 ? BulletAt(text, i + 1) : 0;
    if (bullet == 0) {
      out += text[i];
      continue;
    }
    out += ", ";
    i += bullet;
  }
  return out;
}

std::string ListedBelow(string_view text) {
  std::string out;
  int items = 0;
  for (string_view rest = text; !rest.empty();) {
    const std::string number = std::to_string(items + 1);
    const bool numbered = rest.starts_with(number + ". ") || rest.starts_with(number + ") ");
    const size_t mark = numbered ? number.size() + 2 : BulletAt(rest, 0);
    if (mark == 0) break;
    const size_t end = std::min(rest.find('\n'), rest.size());
    const string_view item = TrimSpaces(rest.substr(mark, end - mark));
    if (item.empty() || ShapeOf(item).prose > 0) break;
    out += items++ > 0 ? ", " : "";
    out += item;
    rest = TrimSpaces(rest.substr(end));
  }
  return items > 1 ? out : "";
}

bool GivesReason(string_view before) {
  size_t begin = before.rfind('\n') + 1;
  if (const size_t stop = before.rfind(". "); stop != kNone) begin = std::max(begin, stop + 2);
  const std::string sentence = LowerAscii(TrimSpaces(before.substr(begin)));
  return sentence == "since" || sentence == "because" || sentence == "given" || sentence == "with" || sentence == "as";
}

}  // namespace iha::scoring::math
