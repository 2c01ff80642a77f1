// stops.h: what is cut from a text before it is graded, as lm-evaluation-harness 0.4.13 cuts it.
//
// Pure, thread-safe, linear in the text's length for each stop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace iha::scoring {

// Behind the last "</think>", without white space in front; a text without that mark stays whole.
std::string_view WithoutThinking(std::string_view text);

// Before the first of each stop, one stop after the other in list order; empty stops are skipped, nothing is stripped.
std::string CutAtStops(std::string_view text, const std::vector<std::string>& stops);

}  // namespace iha::scoring
