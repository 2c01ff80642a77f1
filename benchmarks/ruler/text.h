// text.h: what RULER's scripts do with texts, as Python's str does it (UTF-8). Pure; thread: any; linear time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace iha::benchmarks::ruler {

// len(text.split())
int64_t CountWords(std::string_view text);
// re.sub(r"\s+", " ", text)
std::string CollapseSpace(std::string_view text);
// text.replace(from, to); `from` is not empty.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to);
// len(text): characters. Bytes that are not UTF-8 are one each.
int64_t CountCharacters(std::string_view text);
// Its characters; bytes that are not UTF-8 stand for themselves.
std::u32string ToCodePoints(std::string_view text);

}  // namespace iha::benchmarks::ruler
