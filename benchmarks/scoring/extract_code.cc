#include "benchmarks/scoring/extract_code.h"

#include <algorithm>

#include "benchmarks/scoring/python_text.h"
#include "common/text.h"

namespace iha::scoring {
namespace {

constexpr std::string_view kFence = "```";
constexpr std::string_view kSpace = " \t\r\n\f\v";

struct Fence {
  size_t begin = 0;  // of its line
  size_t end = 0;    // behind its line
  bool tagged = false;
};

// The first fence line at or behind `from`, which is the begin of a line; npos in `begin` when there is none.
Fence NextFence(std::string_view text, size_t from) {
  while (from < text.size()) {
    const size_t newline = text.find('\n', from);
    const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    const std::string_view line = text.substr(from, end - from);
    const size_t mark = line.find_first_not_of(" \t");
    if (mark != std::string_view::npos && line.substr(mark).starts_with(kFence)) {
      const size_t behind = line.find_first_not_of('`', mark);
      const bool tagged =
          behind != std::string_view::npos && line.find_first_not_of(kSpace, behind) != std::string_view::npos;
      return {.begin = from, .end = end, .tagged = tagged};
    }
    from = end;
  }
  return {.begin = std::string_view::npos, .end = text.size(), .tagged = false};
}

// re.findall(r"```(?:\w+)?\n?(.*?)\n?```", "```" + text, re.DOTALL)[0], or "" when nothing matches.
std::string FirstBlockOfMbppInstruct(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size()) {
    char32_t c = 0;
    const size_t length = Utf8Length(text.substr(begin), &c);
    if (length == 0 || !IsPythonWord(c)) break;
    begin += length;
  }
  if (begin < text.size() && text[begin] == '\n') begin++;
  size_t end = text.find(kFence, begin);
  if (end == std::string_view::npos) return "";
  if (end > begin && text[end - 1] == '\n') end--;
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

std::string CodeInFence(std::string_view text) {
  const Fence first = NextFence(text, 0);
  if (first.begin == std::string_view::npos) return std::string(text);
  const std::string_view before = text.substr(0, first.begin);
  const bool opens = first.tagged || before.find_first_not_of(kSpace) == std::string_view::npos;
  if (!opens) return std::string(before);
  const Fence close = NextFence(text, first.end);
  return std::string(text.substr(first.end, std::min(close.begin, text.size()) - first.end));
}

std::string ExtractCode(CodeExtraction rule, std::string_view text) {
  switch (rule) {
    case CodeExtraction::kWhole:
      break;
    case CodeExtraction::kFence:
      return CodeInFence(text);
    case CodeExtraction::kFirstFence:
      return std::string(text.substr(0, text.find(kFence)));
    case CodeExtraction::kMbppInstruct:
      return FirstBlockOfMbppInstruct(text);
  }
  return std::string(text);
}

}  // namespace iha::scoring
