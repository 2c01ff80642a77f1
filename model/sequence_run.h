// sequence_run.h: token ids through a backend by hand, without the engine: logits of every position, in chunks of any
// size. For the logits command, oracles and exactness tests.
//
// Thread: the backend's. Blocking. Errors: the backend's and the sink's, unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "model/backend.h"

namespace iha::model {

// The next logits of a sequence: [positions of this step][vocab], positions ascending over the calls. An error ends
// the run.
using LogitSink = std::function<absl::Status(size_t sequence, std::span<const float> logits)>;

// Cache blocks that RunSequences needs: the caller reserves at least as many.
int32_t BlocksFor(const ModelInfo& info, std::span<const std::vector<int32_t>> sequences);

// All sequences share each step, `chunk` tokens of each (0 = whole); each has its own consecutive blocks, from 0 on, so
// what an earlier run left in the cache is overwritten. trace may be null; only for one sequence: layers hold its
// tokens in order, whatever the chunks.
absl::Status RunSequences(Backend& backend, std::span<const std::vector<int32_t>> sequences, size_t chunk,
                          const LogitSink& sink, Trace* trace);

}  // namespace iha::model
