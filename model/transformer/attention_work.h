// attention_work.h: what a call of kernels::Attention must do at least, for the profile. Pure.
#pragma once

#include <span>

#include "kernels/attention/attention.h"
#include "model/op_profile.h"

namespace iha::model {

// Scores and weighted sums of every visible pair; visible keys and values, those that several groups share (a prompt
// prefix in common) once. What a KeyBlockMaker makes counts as if it lay in the cache.
OpWork WorkOf(const kernels::KvLayout& layout, std::span<const kernels::AttentionGroup> groups);

}  // namespace iha::model
