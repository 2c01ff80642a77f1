// Attention with Highway: the rows of a job walk the key blocks once, tile by tile. The rules are in attention.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_jobs.h"
#include "kernels/attention/block-inl.h"
#include "kernels/support/aligned.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

constexpr size_t kFetchAheadBytes = size_t{256} << 10;

// What the rows of a job carry from block to block, and the current block's scores. One array per field, rows one after
// another, so that any rows next to each other can be a tile.
struct JobState {
  const AttentionRow** row;
  VisibleSlots* slots;  // of the current block
  float* score;         // [64]: s_j, then p_j, of the current block
  float* acc;           // [v_stride]
  float* lane_sum;      // [16]
  float* max;
  float* q;  // [d], scaled
};

// Bytes of a JobState for `rows` rows; if `memory` is not null, places it there (64-byte aligned).
HWY_INLINE size_t PlaceState(const KvLayout& layout, size_t rows, char* memory, JobState& s) {
  size_t at = 0;
  const auto place = [&](auto*& field, size_t count) {
    if (memory != nullptr) field = reinterpret_cast<std::remove_reference_t<decltype(field)>>(memory + at);
    at += (rows * count * sizeof(*field) + 63) / 64 * 64;
  };
  place(s.row, 1);
  place(s.slots, 1);
  place(s.score, kKeyBlock);
  place(s.acc, layout.v_stride());
  place(s.lane_sum, 16);
  place(s.max, 1);
  place(s.q, layout.d);
  return at;
}

// Scores become exp(s - m'), the state is rescaled to the new maximum m'.
HWY_INLINE void SoftmaxBlock(const JobState& s, size_t m, size_t v_stride) {
  float* score = s.score + m * kKeyBlock;
  float* acc = s.acc + m * v_stride;
  float* lane_sum = s.lane_sum + m * 16;
  const float old_max = s.max[m], new_max = MaskAndMax(score, s.slots[m], old_max);
  X16 sum = X16::Load(lane_sum);
  // Before the first visible key there is nothing to rescale; with an unchanged maximum the factor is exactly 1.
  if (new_max != old_max && old_max != -std::numeric_limits<float>::infinity()) {
    const X16 factor = ExpNeg(X16::Set(old_max - new_max));
    sum = Mul(sum, factor);
    for (size_t i = 0; i < v_stride; i += 16) Mul(X16::Load(acc + i), factor).Store(acc + i);
  }
  s.max[m] = new_max;
  ExpAndSum(score, new_max, sum).Store(lane_sum);
}

HWY_INLINE void StartJob(const KvLayout& layout, float scale, const AttentionJob& job, const JobState& s) {
  size_t m = 0;
  for (const AttentionPiece& piece : job.pieces) {
    for (size_t r = 0; r < piece.rows; ++r, ++m) {
      const AttentionRow& row = piece.group->rows[piece.first_row + r];
      s.row[m] = &row;
      s.max[m] = -std::numeric_limits<float>::infinity();
      for (size_t i = 0; i < layout.d; ++i) s.q[m * layout.d + i] = row.q[i] * scale;
    }
  }
  std::fill_n(s.lane_sum, job.rows * 16, 0.0f);
  std::fill_n(s.acc, job.rows * layout.v_stride(), 0.0f);
}

HWY_INLINE void FinishJob(const KvLayout& layout, size_t rows, const JobState& s) {
  for (size_t m = 0; m < rows; ++m) {
    const X16 sum = X16::Set(Fold16(s.lane_sum + m * 16));
    const float* acc = s.acc + m * layout.v_stride();
    float* out = s.row[m]->out;
    size_t i = 0;
    for (; i + 16 <= layout.d_v; i += 16) Div(X16::Load(acc + i), sum).Store(out + i);
    if (i < layout.d_v) Div(X16::Load(acc + i), sum).StoreN(out + i, layout.d_v - i);
  }
}

// A visit of a key block: pieces next to each other that hold the same block take it together.
struct Visit {
  const AttentionGroup* group;  // of the first piece
  const char* block;            // null if it is made
  size_t m0, m1;                // rows
  size_t base;                  // position of slot 0
  size_t slots;                 // slots 0 .. slots - 1 hold all that some row sees
};

// The end of what rows m0 .. m0 + rows - 1 see of the block at position `base`, 0 if nothing.
HWY_INLINE size_t VisibleEnd(const JobState& s, size_t m0, size_t rows, size_t base) {
  size_t end = 0;
  for (size_t m = m0; m < m0 + rows; ++m) {
    const VisibleSlots slots = FindSlots(s.row[m]->first, s.row[m]->last, base);
    if (!slots.empty()) end = std::max(end, slots.end);
  }
  return end;
}

// In the order of a job: blocks outside, rows inside.
HWY_INLINE void PlanVisits(const AttentionJob& job, const JobState& s, std::vector<Visit>& visits) {
  visits.clear();
  size_t first = std::numeric_limits<size_t>::max(), end = 0;
  for (size_t m = 0; m < job.rows; ++m) {
    first = std::min<size_t>(first, s.row[m]->first);
    end = std::max<size_t>(end, size_t{s.row[m]->last} + 1);
  }
  for (size_t b = first / kKeyBlock; b * kKeyBlock < end; ++b) {
    size_t m = 0;
    const void* identity = nullptr;  // of the last piece that sees the block, if the next one is beside it
    bool beside = false;
    for (const AttentionPiece& piece : job.pieces) {
      const AttentionGroup& group = *piece.group;
      const size_t m0 = m, slots = VisibleEnd(s, m0, piece.rows, b * kKeyBlock);
      m += piece.rows;
      if (slots == 0) {  // nor is the table read
        beside = false;
        continue;
      }
      const void* own = BlockIdentity(group, b);
      if (beside && own == identity) {
        visits.back().m1 = m;
        visits.back().slots = std::max(visits.back().slots, slots);
      } else {
        const char* block = group.maker != nullptr ? nullptr : static_cast<const char*>(own) + group.head_offset;
        visits.push_back({&group, block, m0, m, b * kKeyBlock, slots});
      }
      identity = own;
      beside = true;
    }
  }
}

// Fetches the blocks of later visits into L2 while tiles compute: the tiles of shared blocks leave the memory idle, and
// rows that are alone with a block are limited by it.
class FetchAhead {
 public:
  void Plan(const KvLayout& layout, const std::vector<Visit>& visits) {
    ranges_.clear();
    size_t bytes = 0;
    const auto add = [&](const char* p, size_t n) {
      ranges_.push_back({p, n, bytes});
      bytes += n;
    };
    const size_t element = StorageBytes(layout.type);
    for (const Visit& visit : visits) {  // two ranges each
      if (visit.block == nullptr) {
        ranges_.insert(ranges_.end(), 2, {nullptr, 0, bytes});
        continue;
      }
      const size_t k_begin = visit.group->key * layout.k_elements() * element;
      add(visit.block + k_begin, RoundUp16(visit.slots) * layout.d * element);
      add(visit.block + layout.v_begin() * element, visit.slots * layout.v_stride() * element);
    }
    next_ = 0;
    p_ = end_ = nullptr;
  }
  // Visit v begins. What is not yet fetched of it comes too late.
  void Begin(size_t v) {
    if (next_ < 2 * v + 2) {
      next_ = 2 * v + 2;
      p_ = end_ = nullptr;
    }
    limit_ = ranges_[2 * v].before + kFetchAheadBytes;
  }
  // What `steps` steps of a tile shall fetch, up to `lines` cache lines each.
  Ahead Take(size_t steps, size_t lines) {
    if (p_ >= end_ && !NextRange()) return {};
    const Ahead taken{reinterpret_cast<const uint8_t*>(p_), static_cast<int>(lines)};
    p_ += steps * lines * 64;  // maybe past the end, as the fetch
    return taken;
  }

 private:
  struct Range {
    const char* p;
    size_t bytes;
    size_t before;  // bytes of the ranges before it
  };
  bool NextRange() {
    if (next_ == ranges_.size() || ranges_[next_].before > limit_) return false;
    p_ = ranges_[next_].p;
    end_ = p_ + ranges_[next_++].bytes;
    return p_ < end_;
  }

  std::vector<Range> ranges_;
  size_t next_ = 0, limit_ = 0;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
};
// Rows of a visit that step together, and the slots that some of them see: lowest .. highest - 1.
struct RowTile {
  size_t m0 = 0;
  int count = 0;
  size_t lowest = kKeyBlock, highest = 0;
  [[nodiscard]] bool empty() const { return lowest >= highest; }
};
// Tiles that take a block's keys one after another, then its values: in turns they would fill a core's first cache.
constexpr size_t kTilesTogether = 4;

// What `steps` steps of `panels` panels for the tile shall fetch. Few rows read a block in about as many steps as it
// has lines / 4; the tiles of many rows share one.
template <class R>
HWY_INLINE Ahead FetchFor(const RowTile& tile, size_t panels, size_t steps, FetchAhead& ahead) {
  const size_t lines = tile.count <= 3 ? 4 : 2, wide = static_cast<size_t>(TilePanels(tile.count, R::kMaxAcc));
  return ahead.Take((panels + wide - 1) / wide * steps, lines);
}

// Scores of the rows m0 .. m0 + count - 1: lanes are keys, one chain over d per (row, key); whole sub-blocks, what is
// invisible is masked after.
template <class R, class T>
HWY_INLINE RowTile ScoreTile(const KvLayout& layout, const Visit& visit, const JobState& s, size_t m0, int count,
                             const T* block, FetchAhead& ahead) {
  RowTile tile{.m0 = m0, .count = count};
  for (size_t m = m0; m < m0 + static_cast<size_t>(count); ++m) {
    s.slots[m] = FindSlots(s.row[m]->first, s.row[m]->last, visit.base);
    if (s.slots[m].empty()) continue;
    tile.lowest = std::min(tile.lowest, s.slots[m].begin);
    tile.highest = std::max(tile.highest, s.slots[m].end);
  }
  if (tile.empty()) return tile;
  const size_t d = layout.d, p0 = tile.lowest / 16, p1 = RoundUp16(tile.highest) / 16;
  RunPanels<R>(count, p1 - p0, s.q + m0 * d, d, 1, KeyReader<R>(layout, block, visit.group->key, p0),
               s.score + m0 * kKeyBlock + p0 * 16, kKeyBlock, 0, d, true, FetchFor<R>(tile, p1 - p0, d, ahead));
  return tile;
}

template <class R, class T>
HWY_INLINE void ValueTile(const KvLayout& layout, const JobState& s, const RowTile& tile, const T* block,
                          FetchAhead& ahead) {
  if (tile.empty()) return;
  const size_t v_stride = layout.v_stride();
  const auto slots = [&](int m) { return s.slots[tile.m0 + static_cast<size_t>(m)]; };
  AddValues<R>(layout, block, s.score + tile.m0 * kKeyBlock, slots, tile.count, s.acc + tile.m0 * v_stride, v_stride,
               FetchFor<R>(tile, v_stride / 16, tile.highest - tile.lowest, ahead));
}

template <class R, class T>
void AttendJob(const KvLayout& layout, const JobState& s, const std::vector<Visit>& visits, FetchAhead& ahead,
               char* made) {
  for (size_t v = 0; v < visits.size(); ++v) {
    const Visit& visit = visits[v];
    if (visit.block == nullptr) visit.group->maker->Make(visit.base / kKeyBlock, visit.slots, made);
    const T* block = reinterpret_cast<const T*>(visit.block != nullptr ? visit.block : made);
    ahead.Begin(v);
    size_t m0 = visit.m0, m1 = visit.m1;
    const auto sees = [&](size_t m) { return !FindSlots(s.row[m]->first, s.row[m]->last, visit.base).empty(); };
    while (m0 < m1 && !sees(m0)) ++m0;
    while (m0 < m1 && !sees(m1 - 1)) --m1;
    // Even tiles, as in matmul: 8 rows are 4 + 4.
    const size_t rows = m1 - m0, tiles = (rows + R::kMaxRows - 1) / R::kMaxRows;
    const auto begin = [&](size_t t) { return m0 + rows * t / tiles; };
    for (size_t t0 = 0; t0 < tiles; t0 += kTilesTogether) {
      const size_t count = std::min(kTilesTogether, tiles - t0);
      RowTile together[kTilesTogether];
      for (size_t t = 0; t < count; ++t) {
        const size_t r0 = begin(t0 + t), r1 = begin(t0 + t + 1);
        together[t] = ScoreTile<R>(layout, visit, s, r0, static_cast<int>(r1 - r0), block, ahead);
      }
      for (size_t m = begin(t0); m < begin(t0 + count); ++m) {
        if (!s.slots[m].empty()) SoftmaxBlock(s, m, layout.v_stride());
      }
      for (size_t t = 0; t < count; ++t) ValueTile<R>(layout, s, together[t], block, ahead);
    }
  }
}

void AttendJobAny(const KvLayout& layout, float scale, const AttentionJob& job) {
  static thread_local AlignedArray<char> scratch;
  static thread_local size_t scratch_bytes = 0;
  static thread_local std::vector<Visit> visits;
  static thread_local FetchAhead ahead;
  const bool made = job.pieces.front().group->maker != nullptr;
  JobState s{};
  const size_t state_bytes = PlaceState(layout, job.rows, nullptr, s);
  const size_t bytes = state_bytes + (made ? layout.bytes() : 0);
  if (scratch_bytes < bytes) {
    scratch = MakeAligned<char>(bytes);
    scratch_bytes = bytes;  // after it: it may throw
  }
  PlaceState(layout, job.rows, scratch.get(), s);
  StartJob(layout, scale, job, s);
  PlanVisits(job, s, visits);
  ahead.Plan(layout, visits);
  char* made_block = scratch.get() + state_bytes;
  if (layout.type == StorageType::kF32) {
    AttendJob<ReadF32, float>(layout, s, visits, ahead, made_block);
  } else {
    AttendJob<ReadBF16Plain, uint16_t>(layout, s, visits, ahead, made_block);
  }
  FinishJob(layout, job.rows, s);
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
  const auto tile = static_cast<size_t>(HWY_DYNAMIC_DISPATCH(TileRows)(layout.type));
  size_t rows = 0;
  for (const AttentionGroup& group : groups) rows += group.rows.size();
  // Enough jobs for the threads to end together, and no more rows than keep their state in a core's cache.
  const auto threads = static_cast<size_t>(parallel.Threads());
  const size_t even = threads == 1 ? rows : rows / (threads * kJobsPerThread);
  const size_t plain = std::clamp(even, tile, kMaxJobTiles * tile), most_made = kMadeBlockTiles * tile;
  const std::vector<AttentionJob> jobs =
      CutAttention(groups, {plain, plain}, {most_made, std::clamp(even, tile, most_made)});
  parallel.Run(jobs.size(), [&](size_t j, int) { attend(layout, scale, jobs[j]); });
}

}  // namespace iha::kernels
#endif
