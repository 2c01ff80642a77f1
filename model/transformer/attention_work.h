// attention_work.h: what a call of kernels::Attention must do at least, for the profile. Pure.
#pragma once

#include <span>

#include "kernels/attention/attention.h"
#include "model/op_profile.h"

namespace iha::model {

// Scores and weighted sums of every visible pair; each group's visible keys and values read once.
OpWork WorkOf(const kernels::KvLayout& layout, std::span<const kernels::AttentionGroup> groups);

}  // namespace iha::model
