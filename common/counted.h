// counted.h: how many of something, in words that agree: "1 item", "2 items". Pure.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace iha {

// `plural`: where it is not the noun with an s.
inline std::string Counted(int64_t count, std::string_view noun, std::string_view plural = "") {
  if (count == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, plural);
}

template <class Size>
std::string CountedSize(const Size& list, std::string_view noun) {
  return Counted(static_cast<int64_t>(list.size()), noun);
}

}  // namespace iha
