#include "benchmarks/scoring/stops.h"

namespace iha::scoring {

std::string_view WithoutThinking(std::string_view text) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = text.rfind(kEnd);
  if (end == std::string_view::npos) return text;
  text.remove_prefix(end + kEnd.size());
  const size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string CutAtStops(std::string_view text, const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    if (!stop.empty()) text = text.substr(0, text.find(stop));
  }
  return std::string(text);
}

}  // namespace iha::scoring
