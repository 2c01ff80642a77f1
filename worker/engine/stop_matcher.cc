#include "worker/engine/stop_matcher.h"

#include <algorithm>

namespace iha::engine {

bool StopMatcher::Append(std::string_view piece) {
  const size_t old_size = text_.size();
  text_.append(piece);
  size_t cut = std::string::npos;
  for (const std::string& stop : stops_) {
    // An occurrence that is new must end inside `piece`.
    const size_t from = old_size >= stop.size() - 1 ? old_size - (stop.size() - 1) : 0;
    cut = std::min(cut, text_.find(stop, from));
  }
  if (cut == std::string::npos) return false;
  text_.resize(cut);
  return true;
}

}  // namespace iha::engine
