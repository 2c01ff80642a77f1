// attention_work.h: what a call of kernels::Attention must do at least, for the profile. Pure.
//
// `groups` are [sequence][head]: all heads of a sequence see the same positions in the same blocks, so that one of them
// stands for all. What a KeyBlockMaker makes counts as if it lay in the cache.
#pragma once

#include <span>

#include "kernels/attention/attention.h"
#include "model/op_profile.h"

namespace iha::model {

struct SeenKeys {
  double pairs = 0;  // of a row and a key that it sees
  double keys = 0;   // those that several sequences share (a prompt prefix in common) once
};
SeenKeys SeenByAHead(std::span<const kernels::AttentionGroup> groups, size_t heads);

// Scores and weighted sums of every visible pair; visible keys, and values that layout.keys heads share, once.
OpWork WorkOf(const kernels::KvLayout& layout, std::span<const kernels::AttentionGroup> groups, size_t heads);

}  // namespace iha::model
