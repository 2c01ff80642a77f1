// batch_limit.h: how many sequences run at once after a step that did not fit into memory. Pure; any thread.
//
// Multiplicative decrease, additive increase, as TCP's congestion window (Chiu and Jain 1989): a failed step halves
// what ran in it; then each kGoodSteps steps that ran as many as are allowed, and fitted, allow one more, never above
// the configured limit. A passing shortage (another process on the device) costs a while, not the engine's life; a
// lasting one costs one failed step in kGoodSteps. Neither changes an output (ENG-3).
#pragma once

#include <algorithm>
#include <cstdint>

namespace iha::engine {

inline constexpr int32_t kGoodSteps = 64;

struct BatchLimit {
  int32_t configured = 1;  // at least 1
  int32_t now = 1;         // 1 .. configured
  int32_t good_steps = 0;  // at `now`, since it last changed
};

// Of a step of `running` sequences, two or more, that ended for want of memory.
constexpr BatchLimit AfterShortage(BatchLimit limit, int32_t running) {
  return {.configured = limit.configured, .now = std::clamp(running / 2, 1, limit.configured), .good_steps = 0};
}

// Of a step of `running` sequences that fitted. One with fewer than are allowed says nothing of one more.
constexpr BatchLimit AfterGoodStep(BatchLimit limit, int32_t running) {
  if (limit.now >= limit.configured || running < limit.now) return limit;
  limit.good_steps++;
  if (limit.good_steps < kGoodSteps) return limit;
  return {.configured = limit.configured, .now = limit.now + 1, .good_steps = 0};
}

}  // namespace iha::engine
