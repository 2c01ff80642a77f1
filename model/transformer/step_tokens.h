// step_tokens.h: the tokens of one step, flattened over its segments, with the cache blocks of one layer group, and
// where the step's time is noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/backend.h"
#include "model/op_profile.h"

namespace iha::model {

struct StepTokens {
  std::span<const Segment> segments;
  std::vector<uint32_t> positions;               // of each token
  std::vector<uint8_t*> block_of_token;          // cache block that holds the token
  std::vector<std::vector<const void*>> tables;  // per segment: its blocks' addresses, null for none
  OpProfile* profile = nullptr;                  // the backend's, never null
  size_t count() const { return positions.size(); }
};

}  // namespace iha::model
