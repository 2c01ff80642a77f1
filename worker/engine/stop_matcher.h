// stop_matcher.h: finds stop strings in text that arrives in pieces, whatever the token boundaries.
//
// The text ends at the first piece after which it contains a stop string; it is cut before the stop string that starts
// first (of those complete by then). Bytes, not characters: UTF-8 needs no care. One thread; no errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace iha::engine {

class StopMatcher {
 public:
  // No stop may be empty (checked at Submit).
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // True when a stop string is complete: text() is cut and nothing may be appended any more.
  bool Append(std::string_view piece);

  const std::string& text() const { return text_; }
  std::string TakeText() { return std::move(text_); }

 private:
  std::vector<std::string> stops_;  // constant after construction
  std::string text_;
};

}  // namespace iha::engine
