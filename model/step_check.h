// step_check.h: what every backend demands of a reservation and of a step before it touches its cache. Pure; thread:
// any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "model/backend.h"

namespace iha::model {

// Internal when `reserved` blocks are reserved already: it is done once. InvalidArgument unless blocks > 0.
absl::Status CheckReservation(int32_t reserved, int32_t blocks);

// InvalidArgument unless positions lie in the context and are covered by the block table, block ids are below
// `cache_blocks`, token ids below the vocabulary, logit rows increase within their segment and `logits` floats are what
// those rows need.
absl::Status CheckStep(std::span<const Segment> segments, size_t logits, const ModelInfo& info, int32_t cache_blocks);

}  // namespace iha::model
