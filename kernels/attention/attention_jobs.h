// attention_jobs.h: which rows of one Attention call walk the key blocks together.
//
// Groups whose tables hold the same blocks from their first common block on (a shared prompt prefix, samples of one
// prompt) go into the same jobs, so that a job reads a shared block once for all its rows. Groups of one head that
// share nothing are put together while they are small: a job fetches its next blocks ahead, and only its first ones
// come too late. Pure functions of the groups' tables and rows; they change which thread computes a row and beside
// whom, never a bit.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/attention/attention.h"

namespace iha::kernels {

// Consecutive rows of one group.
struct AttentionPiece {
  const AttentionGroup* group = nullptr;
  size_t first_row = 0;
  size_t rows = 0;
};
// Pieces that agree on head_offset, key and whether they have a maker.
struct AttentionJob {
  std::vector<AttentionPiece> pieces;
  size_t rows = 0;
  size_t visible = 0;  // pairs of a row and a key that it sees
};

// What two groups of one head compare: equal at the same b means equal contents. b is in the range that the rows see.
const void* BlockIdentity(const AttentionGroup& group, size_t b);

struct AttentionCut {
  size_t piece_rows = 1;  // of one group in a job, at most
  size_t job_rows = 1;    // of a job about, when it is made of several groups; groups up to this size stay whole
};
// Every row of `groups` in exactly one job; the job that sees most comes first. The jobs point into `groups`.
std::vector<AttentionJob> CutAttention(std::span<const AttentionGroup> groups, const AttentionCut& plain,
                                       const AttentionCut& made);

}  // namespace iha::kernels
