// Attention with Highway: tiles of rows walk the key blocks once. The rules are in attention.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/block-inl.h"
#include "kernels/support/aligned.h"

#ifndef IHA_KERNELS_ATTENTION_CPU_ONCE
#define IHA_KERNELS_ATTENTION_CPU_ONCE
namespace iha::kernels {
struct AttentionTile {
  const KvLayout* layout;
  float scale;
  const AttentionRow* rows;
  int count;
  size_t key;
};
// Consecutive rows of one group, cut into even tiles.
struct AttentionJob {
  const KvLayout* layout;
  float scale;
  const AttentionGroup* group;
  size_t first_row;
  size_t rows;
  size_t tiles;
};
}  // namespace iha::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// State of the rows of one tile between key blocks.
struct TileState {
  alignas(64) float score[kMaxTileRows][kKeyBlock];  // s_j, then p_j, of the current block
  alignas(64) float acc[kMaxTileRows][kMaxHeadDim];
  alignas(64) float lane_sum[kMaxTileRows][16];
  alignas(64) float q[kMaxTileRows * kMaxHeadDim];  // scaled, [d][rows]
  float max[kMaxTileRows];
  VisibleSlots slots[kMaxTileRows];  // of the current block
};

// Scores become exp(s - m'), the state is rescaled to the new maximum m'.
HWY_INLINE void SoftmaxBlock(TileState& t, int m, size_t v_stride) {
  const float new_max = MaskAndMax(t.score[m], t.slots[m], t.max[m]);
  X16 sum = X16::Load(t.lane_sum[m]);
  // Before the first visible key there is nothing to rescale; with an unchanged maximum the factor is exactly 1.
  if (new_max != t.max[m] && t.max[m] != -std::numeric_limits<float>::infinity()) {
    const X16 factor = ExpNeg(X16::Set(t.max[m] - new_max));
    sum = Mul(sum, factor);
    for (size_t i = 0; i < v_stride; i += 16) Mul(X16::Load(t.acc[m] + i), factor).Store(t.acc[m] + i);
  }
  t.max[m] = new_max;
  ExpAndSum(t.score[m], new_max, sum).Store(t.lane_sum[m]);
}

HWY_INLINE void StartTile(const AttentionTile& g, TileState& t) {
  const size_t d = g.layout->d;
  for (int m = 0; m < g.count; ++m) {
    const AttentionRow& row = g.rows[m];
    t.max[m] = -std::numeric_limits<float>::infinity();
    std::fill_n(t.lane_sum[m], 16, 0.0f);
    std::fill_n(t.acc[m], g.layout->v_stride(), 0.0f);
    for (size_t i = 0; i < d; ++i) t.q[i * g.count + m] = row.q[i] * g.scale;
  }
}

// Which slots of the block at position `base` each row sees; [lowest, highest) is what some row sees.
HWY_INLINE void FindVisible(const AttentionTile& g, TileState& t, size_t base, size_t& lowest, size_t& highest) {
  lowest = kKeyBlock;
  highest = 0;
  for (int m = 0; m < g.count; ++m) {
    const VisibleSlots slots = t.slots[m] = FindSlots(g.rows[m].first, g.rows[m].last, base);
    if (slots.empty()) continue;
    lowest = std::min(lowest, slots.begin);
    highest = std::max(highest, slots.end);
  }
}

// One key block for the rows of a tile that see it; FindVisible has run.
template <class R, class T>
HWY_INLINE void StepTile(const AttentionTile& g, TileState& t, const T* block, size_t lowest, size_t highest) {
  const KvLayout& layout = *g.layout;
  const size_t d = layout.d, v_stride = layout.v_stride();
  // Scores: lanes are keys, one chain over d per (row, key); whole sub-blocks, what is invisible is masked after.
  const size_t p0 = lowest / 16, p1 = RoundUp16(highest) / 16;
  RunPanels<R>(g.count, p1 - p0, t.q, 1, g.count, KeyReader<R>(layout, block, g.key, p0), t.score[0] + p0 * 16,
               kKeyBlock, 0, d, true);
  for (int m = 0; m < g.count; ++m) {
    if (!t.slots[m].empty()) SoftmaxBlock(t, m, v_stride);
  }
  AddValues<R>(
      layout, block, t.score[0], [&](int m) { return t.slots[m]; }, g.count, t.acc[0], kMaxHeadDim);
}

HWY_INLINE void FinishTile(const AttentionTile& g, TileState& t) {
  const KvLayout& layout = *g.layout;
  for (int m = 0; m < g.count; ++m) {
    const X16 sum = X16::Set(Fold16(t.lane_sum[m]));
    size_t i = 0;
    for (; i + 16 <= layout.d_v; i += 16) Div(X16::Load(t.acc[m] + i), sum).Store(g.rows[m].out + i);
    if (i < layout.d_v) Div(X16::Load(t.acc[m] + i), sum).StoreN(g.rows[m].out + i, layout.d_v - i);
  }
}

// Tile k of a job's rows: even tiles, as in matmul: 8 rows are 4 + 4.
HWY_INLINE AttentionTile TileOf(const AttentionJob& job, size_t k) {
  const size_t r0 = job.rows * k / job.tiles, r1 = job.rows * (k + 1) / job.tiles;
  return {job.layout, job.scale, job.group->rows.data() + job.first_row + r0, static_cast<int>(r1 - r0),
          job.group->key};
}

// Blocks outside, tiles inside, so that a made block serves every row of the job. Blocks of a cache are read where they
// lie; a job has one tile then.
template <class R, class T>
void AttendJob(const AttentionJob& job, TileState* states, void* made) {
  size_t first = std::numeric_limits<size_t>::max(), end = 0;
  for (size_t r = 0; r < job.rows; ++r) {
    const AttentionRow& row = job.group->rows[job.first_row + r];
    first = std::min<size_t>(first, row.first);
    end = std::max<size_t>(end, size_t{row.last} + 1);
  }
  for (size_t k = 0; k < job.tiles; ++k) StartTile(TileOf(job, k), states[k]);
  const KeyBlockMaker* maker = job.group->maker;
  for (size_t b = first / kKeyBlock; b * kKeyBlock < end; ++b) {
    const T* block = nullptr;
    for (size_t k = 0; k < job.tiles; ++k) {
      const AttentionTile tile = TileOf(job, k);
      size_t lowest, highest;
      FindVisible(tile, states[k], b * kKeyBlock, lowest, highest);
      if (lowest >= highest) continue;  // rows far apart: a block that none of them sees
      if (block == nullptr && maker != nullptr) {
        maker->Make(b, std::min(kKeyBlock, end - b * kKeyBlock), made);
        block = static_cast<const T*>(made);
      } else if (block == nullptr) {
        block = reinterpret_cast<const T*>(static_cast<const char*>(job.group->blocks[b]) + job.group->head_offset);
      }
      StepTile<R>(tile, states[k], block, lowest, highest);
    }
  }
  for (size_t k = 0; k < job.tiles; ++k) FinishTile(TileOf(job, k), states[k]);
}

void AttendJobAny(const AttentionJob& job) {
  static thread_local AlignedArray<TileState> states;
  static thread_local AlignedArray<char> made;
  static thread_local size_t tiles = 0, made_bytes = 0;
  if (tiles < job.tiles) {
    states = MakeAligned<TileState>(job.tiles);
    tiles = job.tiles;  // after it: it may throw
  }
  if (job.group->maker != nullptr && made_bytes < job.layout->bytes()) {
    made = MakeAligned<char>(job.layout->bytes());
    made_bytes = job.layout->bytes();
  }
  if (job.layout->type == StorageType::kF32) return AttendJob<ReadF32, float>(job, states.get(), made.get());
  AttendJob<ReadBF16Plain, uint16_t>(job, states.get(), made.get());
}

int TileRows(StorageType type) { return type == StorageType::kF32 ? ReadF32::kMaxRows : ReadBF16Plain::kMaxRows; }

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(AttendJobAny);
HWY_EXPORT(TileRows);

void Attention(const KvLayout& layout, float scale, std::span<const AttentionGroup> groups, ParallelFor& parallel) {
  assert(layout.d <= kMaxHeadDim && layout.d_v <= kMaxHeadDim && layout.type != StorageType::kF16);
  const auto attend = HWY_DYNAMIC_DISPATCH(AttendJobAny);
  const size_t max_rows = static_cast<size_t>(HWY_DYNAMIC_DISPATCH(TileRows)(layout.type));
  std::vector<AttentionJob> jobs;
  for (const AttentionGroup& group : groups) {
    const size_t rows = group.rows.size(), tiles = (rows + max_rows - 1) / max_rows;
    const size_t per_job = group.maker != nullptr ? kMadeBlockTiles : 1;
    for (size_t t = 0; t < tiles; t += per_job) {
      const size_t t1 = std::min(tiles, t + per_job), r0 = rows * t / tiles, r1 = rows * t1 / tiles;
      jobs.push_back({&layout, scale, &group, r0, r1 - r0, t1 - t});
    }
  }
  // The longest jobs first, so that no thread starts one when the others are done.
  if (parallel.Threads() > 1) {
    const auto cost = [](const AttentionJob& job) {
      return job.group->rows[job.first_row + job.rows - 1].last * job.tiles;
    };
    std::stable_sort(jobs.begin(), jobs.end(),
                     [&](const AttentionJob& a, const AttentionJob& b) { return cost(a) > cost(b); });
  }
  parallel.Run(jobs.size(), [&](size_t j, int) { attend(jobs[j]); });
}

}  // namespace iha::kernels
#endif
