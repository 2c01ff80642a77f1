// sequence.h: a request as the scheduler sees it: token ids, positions computed, blocks held. No text, no sampling.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/kv_groups.h"
#include "worker/engine/prefix_cache.h"
#include "worker/engine/request.h"

namespace iha::engine {

// What the scheduler is given. Generation: tokens = prompt, first_logit = prompt size - 1. Scoring: tokens = prompt and
// continuation without its last id, first_logit the same; nothing is appended later.
struct NewSequence {
  SequenceId id{};
  std::vector<int32_t> tokens;
  int64_t prompt_tokens = 0;  // the part that others may share
  int64_t first_logit = 0;    // first position whose logits are wanted
  int64_t max_positions = 0;  // positions it may ever compute: bound of its cache need
};

struct Sequence {
  enum class State { kWaiting, kRunning };

  // Constant after Add.
  SequenceId id{};
  int64_t prompt_tokens = 0;
  int64_t max_positions = 0;
  std::vector<uint64_t> prefix_hashes;  // of the prompt's full blocks
  uint64_t prompt_hash = 0;             // of the whole prompt

  // Set by Add; grown by Update.
  std::vector<int32_t> tokens;
  int64_t first_logit = 0;  // moves on as logits are delivered; survives preemption

  // Set at admission, moved on by Update, reset by preemption.
  State state = State::kWaiting;
  int64_t computed = 0;     // positions whose keys and values are in the blocks
  BlockTables tables;       // empty while it waits; KvGroups::Entries after Schedule; kNoKvBlock where no row will look
  bool publishing = false;  // its prompt blocks still go into the prefix cache
  bool owns_path = false;   // as nodes of its own; else they only fill gaps in the nodes that are there
  PrefixNode node = kPrefixRoot;
  int64_t published = 0;  // nodes of the path to `node`

  // Set by Schedule, cleared by Update: the batch in flight refers to `tables`.
  bool in_flight = false;
  bool cancelled = false;  // while in flight: freed by Update, excluded from scheduling

  int64_t remaining() const { return static_cast<int64_t>(tokens.size()) - computed; }
};

}  // namespace iha::engine
