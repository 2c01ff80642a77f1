// ruler_means.h: what RULER makes of its per-task scores: the mean of a length, their averages, the effective length.
//
// Pure, exact, thread-safe. Source: NVIDIA/RULER @ c3f5e3b, README (the weights reproduce its table, protocols.md 6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/scoring/rational.h"

namespace iha::scoring {

// One task at one length, which is one cell of a table: "ruler:vt@4096".
struct RulerCell {
  std::string task;
  int64_t length = 0;  // tokens
};
// nullopt: not such a name.
std::optional<RulerCell> ParseRulerCell(std::string_view name);

// An option of such a benchmark, which says what the needles of an essay task lie in, and its value where that is no
// essay.
inline constexpr char kRulerHaystackOption[] = "haystack";
inline constexpr char kGeneratedHaystack[] = "generated";

// The mean score of the tasks at one length, in [0, 1].
struct LengthMean {
  int64_t length = 0;  // tokens
  Rational mean;
};

// A length counts as handled when its mean is above that of Llama-2-7B (chat) at 4k.
inline const Rational& RulerThreshold() {
  static const Rational threshold(856, 1000);
  return threshold;
}

struct RulerMeans {
  Rational average;
  Rational weighted_increasing;  // weights 1, 2, ... from the shortest length on: long use
  Rational weighted_decreasing;  // the same from the longest on: short use
  // The longest length above the threshold; nullopt: none is.
  std::optional<int64_t> effective_length;
};

// `lengths`: ascending, each once, at least one.
RulerMeans RulerMeansOf(const std::vector<LengthMean>& lengths);

}  // namespace iha::scoring
