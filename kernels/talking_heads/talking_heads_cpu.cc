// Talking heads with Highway: a tile of tokens, all heads, walks the key blocks twice. The rules are in
// talking_heads.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/talking_heads/talking_heads_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/attention/block-inl.h"
#include "kernels/support/aligned.h"
#include "kernels/talking_heads/talking_heads.h"

#ifndef IHA_KERNELS_TALKING_HEADS_CPU_ONCE
#define IHA_KERNELS_TALKING_HEADS_CPU_ONCE
namespace iha::kernels {
inline constexpr size_t kTalkingTokens = 6;  // of a tile: what one pass over a block's keys serves

struct TalkingHeadsJob {
  const TalkingHeadsShape* shape;
  const TalkingHeadsTokens* tokens;
  size_t first_token;
  size_t count;  // up to kTalkingTokens
};
}  // namespace iha::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// A job's scratch. Row a T + t is head a of the tile's token t, T = the job's count: the rows that share a KV head lie
// together, and the heads of one token T rows apart.
struct TalkingState {
  float* q;                            // [rows][d], scaled
  float* plain;                        // [rows][64]: scores L of the current block, in the second pass then weights U
  float* mixed;                        // [rows][64]: J, in the second pass then W
  float* lane_sum;                     // [rows][16]
  float* max;                          // [rows]
  float* acc;                          // [rows][v_stride]
  VisibleSlots slots[kTalkingTokens];  // of the current block
  size_t p0, p1;                       // its sub-blocks of 16 that some token sees
};

HWY_INLINE void StartTalking(const TalkingHeadsJob& job, TalkingState& s) {
  const TalkingHeadsShape& shape = *job.shape;
  const size_t d = shape.layout.d, rows = shape.heads * job.count;
  for (size_t a = 0; a < shape.heads; ++a) {
    for (size_t t = 0; t < job.count; ++t) {
      const float* q = job.tokens->q + (job.first_token + t) * job.tokens->q_stride + a * d;
      float* to = s.q + (a * job.count + t) * d;
      for (size_t i = 0; i < d; ++i) to[i] = q[i] * shape.scale;
    }
  }
  std::fill_n(s.max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(s.lane_sum, rows * 16, 0.0f);
  std::fill_n(s.acc, rows * shape.layout.v_stride(), 0.0f);
}

// What each token sees of block b; false if none sees any.
HWY_INLINE bool FindTalkingSlots(const TalkingHeadsJob& job, TalkingState& s, size_t b) {
  size_t lowest = kKeyBlock, highest = 0;
  for (size_t t = 0; t < job.count; ++t) {
    const uint32_t position = job.tokens->positions[job.first_token + t];
    s.slots[t] = FindSlots(FirstVisible(position, job.shape->window), position, b * kKeyBlock);
    if (s.slots[t].empty()) continue;
    lowest = std::min(lowest, s.slots[t].begin);
    highest = std::max(highest, s.slots[t].end);
  }
  s.p0 = lowest / 16;
  s.p1 = RoundUp16(highest) / 16;
  return lowest < highest;
}

// to[b] = sum_a mix[a, b] from[a] for each token: lanes are keys, one chain over a.
HWY_INLINE void MixHeads(const TalkingHeadsJob& job, const TalkingState& s, const float* mix, const float* from,
                         float* to) {
  const size_t heads = job.shape->heads, ld = job.count * kKeyBlock;
  for (size_t t = 0; t < job.count; ++t) {
    if (s.slots[t].empty()) continue;
    const size_t at = t * kKeyBlock + s.p0 * 16;
    const auto reader = [&](size_t p) { return ReadF32{from + at + p * 16, 16, ld}; };
    for (size_t b = 0; b < heads; b += ReadF32::kMaxRows) {
      const size_t rows = std::min<size_t>(ReadF32::kMaxRows, heads - b);
      RunPanels<ReadF32>(static_cast<int>(rows), s.p1 - s.p0, mix + b, 1, heads, reader, to + b * ld + at, ld, 0, heads,
                         true);
    }
  }
}

// Rows of one KV head in tiles: f(first row, rows).
template <class R, class F>
HWY_INLINE void ForRowTiles(const TalkingHeadsJob& job, size_t kv_head, const F& f) {
  const size_t group = job.shape->heads / job.shape->kv_heads * job.count;
  for (size_t r = 0; r < group; r += R::kMaxRows) {
    f(kv_head * group + r, static_cast<int>(std::min<size_t>(R::kMaxRows, group - r)));
  }
}

// L, then J, of the current block.
template <class R, class T>
HWY_INLINE void MixedScores(const TalkingHeadsJob& job, const TalkingState& s, const char* block) {
  const TalkingHeadsShape& shape = *job.shape;
  const size_t d = shape.layout.d;
  for (size_t g = 0; g < shape.kv_heads; ++g) {
    const T* keys = reinterpret_cast<const T*>(block + g * shape.layout.bytes());
    ForRowTiles<R>(job, g, [&](size_t row, int rows) {
      RunPanels<R>(rows, s.p1 - s.p0, s.q + row * d, d, 1, KeyReader<R>(shape.layout, keys, 0, s.p0),
                   s.plain + row * kKeyBlock + s.p0 * 16, kKeyBlock, 0, d, true);
    });
  }
  MixHeads(job, s, shape.pre, s.plain, s.mixed);
}

// First pass: maximum and sum of every row.
HWY_INLINE void CountBlock(const TalkingHeadsJob& job, const TalkingState& s) {
  for (size_t row = 0; row < job.shape->heads * job.count; ++row) {
    const VisibleSlots slots = s.slots[row % job.count];
    if (slots.empty()) continue;
    float* scores = s.mixed + row * kKeyBlock;
    const float max = MaskAndMax(scores, slots, s.max[row]);
    X16 sum = X16::Load(s.lane_sum + row * 16);
    if (max != s.max[row] && s.max[row] != -std::numeric_limits<float>::infinity()) {
      sum = Mul(sum, ExpNeg(X16::Set(s.max[row] - max)));
    }
    s.max[row] = max;
    ExpAndSum(scores, max, sum).Store(s.lane_sum + row * 16);
  }
}

// Second pass: W, U and the block's part of the output. lane_sum[row][0] is the row's folded sum.
template <class R, class T>
HWY_INLINE void AddBlock(const TalkingHeadsJob& job, const TalkingState& s, const char* block) {
  const TalkingHeadsShape& shape = *job.shape;
  const size_t v_stride = shape.layout.v_stride();
  for (size_t row = 0; row < shape.heads * job.count; ++row) {
    if (s.slots[row % job.count].empty()) continue;
    float* scores = s.mixed + row * kKeyBlock;
    const X16 max = X16::Set(s.max[row]), sum = X16::Set(s.lane_sum[row * 16]);
    // What is computed of invisible keys here is never read again: AddValues keeps to the slots.
    for (size_t j = s.p0 * 16; j < s.p1 * 16; j += 16) {
      Div(ExpNeg(Sub(X16::Load(scores + j), max)), sum).Store(scores + j);
    }
  }
  MixHeads(job, s, shape.post, s.mixed, s.plain);
  for (size_t g = 0; g < shape.kv_heads; ++g) {
    const T* values = reinterpret_cast<const T*>(block + g * shape.layout.bytes());
    ForRowTiles<R>(job, g, [&](size_t row, int rows) {
      AddValues<R>(
          shape.layout, values, s.plain + row * kKeyBlock,
          [&](int m) { return s.slots[(row + static_cast<size_t>(m)) % job.count]; }, rows, s.acc + row * v_stride,
          v_stride);
    });
  }
}

template <class R, class T>
void TalkJob(const TalkingHeadsJob& job, TalkingState& s) {
  const TalkingHeadsShape& shape = *job.shape;
  const auto positions = job.tokens->positions.subspan(job.first_token, job.count);
  const auto [lowest, highest] = std::minmax_element(positions.begin(), positions.end());
  const size_t first = FirstVisible(*lowest, shape.window) / kKeyBlock, last = *highest / kKeyBlock;
  const auto block = [&](size_t b) { return static_cast<const char*>(job.tokens->blocks[b]) + job.tokens->offset; };
  StartTalking(job, s);
  for (size_t b = first; b <= last; ++b) {
    if (!FindTalkingSlots(job, s, b)) continue;
    MixedScores<R, T>(job, s, block(b));
    CountBlock(job, s);
  }
  for (size_t row = 0; row < shape.heads * job.count; ++row) Fold16(s.lane_sum + row * 16);
  for (size_t b = first; b <= last; ++b) {
    if (!FindTalkingSlots(job, s, b)) continue;
    MixedScores<R, T>(job, s, block(b));
    AddBlock<R, T>(job, s, block(b));
  }
  const size_t d_v = shape.layout.d_v;
  for (size_t t = 0; t < job.count; ++t) {
    float* out = job.tokens->out + (job.first_token + t) * shape.heads * d_v;
    for (size_t c = 0; c < shape.heads; ++c) {
      std::memcpy(out + c * d_v, s.acc + (c * job.count + t) * shape.layout.v_stride(), d_v * sizeof(float));
    }
  }
}

void TalkJobAny(const TalkingHeadsJob& job) {
  static thread_local AlignedArray<float> scratch;
  static thread_local size_t floats = 0;
  const KvLayout& layout = job.shape->layout;
  const size_t rows = job.shape->heads * kTalkingTokens;
  const size_t need = rows * (layout.d + 2 * kKeyBlock + 16 + 1 + layout.v_stride());
  if (floats < need) {
    scratch = MakeAligned<float>(need);
    floats = need;  // after it: it may throw
  }
  TalkingState s;
  s.plain = scratch.get();
  s.mixed = s.plain + rows * kKeyBlock;
  s.lane_sum = s.mixed + rows * kKeyBlock;
  s.acc = s.lane_sum + rows * 16;
  s.q = s.acc + rows * layout.v_stride();
  s.max = s.q + rows * layout.d;
  if (layout.type == StorageType::kF32) return TalkJob<ReadF32, float>(job, s);
  TalkJob<ReadBF16Plain, uint16_t>(job, s);
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(TalkJobAny);

void TalkingHeads(const TalkingHeadsShape& shape, std::span<const TalkingHeadsTokens> sequences,
                  ParallelFor& parallel) {
  assert(shape.layout.keys == 1 && shape.layout.type != StorageType::kF16);
  std::vector<TalkingHeadsJob> jobs;
  for (const TalkingHeadsTokens& tokens : sequences) {
    for (size_t t = 0; t < tokens.positions.size(); t += kTalkingTokens) {
      jobs.push_back({&shape, &tokens, t, std::min(kTalkingTokens, tokens.positions.size() - t)});
    }
  }
  // The longest jobs first, so that no thread starts one when the others are done.
  std::stable_sort(jobs.begin(), jobs.end(), [](const TalkingHeadsJob& a, const TalkingHeadsJob& b) {
    return a.tokens->positions[a.first_token] > b.tokens->positions[b.first_token];
  });
  const auto talk = HWY_DYNAMIC_DISPATCH(TalkJobAny);
  parallel.Run(jobs.size(), [&](size_t j, int) { talk(jobs[j]); });
}

}  // namespace iha::kernels
#endif
