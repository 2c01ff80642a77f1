// batch_plan.h: one step of the engine, as a value: what the scheduler decides and the executor carries out.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/request.h"

namespace iha::engine {

// Carried out in order, before the segments: a later copy may overwrite an earlier one's source.
struct BlockCopy {
  int32_t from = 0;
  int32_t to = 0;
  bool operator==(const BlockCopy&) const = default;
};

// Positions start .. start + tokens.size() - 1 of one sequence. Owns its ids, so that a plan outlives the state it came
// from. Fields as in model::Segment.
struct PlannedSegment {
  SequenceId sequence{};
  int64_t start = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> blocks;  // [group][i]
  std::vector<int32_t> logit_rows;
  bool operator==(const PlannedSegment&) const = default;
};

struct BatchPlan {
  std::vector<BlockCopy> copies;
  std::vector<PlannedSegment> segments;  // oldest sequence first within decode, running prefill, newly admitted
  std::vector<SequenceId> preempted;     // put back to waiting by this plan
  int64_t tokens = 0;                    // over all segments
  int64_t logit_rows = 0;                // over all segments
  bool empty() const { return segments.empty(); }
  bool operator==(const BatchPlan&) const = default;
};

// What came of one segment. Segments without logit rows have neither.
struct SegmentOutcome {
  SequenceId sequence{};
  bool finished = false;   // the sequence ends; its blocks are freed
  bool has_token = false;  // `token` was drawn and is to be computed next
  int32_t token = 0;
};

}  // namespace iha::engine
