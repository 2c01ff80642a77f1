// Mixing with Highway: the pseudo rows of some heads of one token are a tile (rows = (h, j), lanes = features, k = m).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/iha_mix_rope/iha_mix_rope_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "kernels/matmul/tile-inl.h"
#include "kernels/rmsnorm/rmsnorm_row-inl.h"
#include "kernels/rope/rotate-inl.h"
#include "kernels/support/aligned.h"
#include "kernels/support/lanes.h"
#include "kernels/support/row_chunks.h"

#ifndef IHA_KERNELS_IHA_MIX_ROPE_CPU_ONCE
#define IHA_KERNELS_IHA_MIX_ROPE_CPU_ONCE
namespace iha::kernels {
// Rows per strip of work: enough to fill register tiles, few enough to stay in L1.
inline constexpr size_t kIhaStripRows = 24;
// A strip is whole target heads.
inline size_t IhaStripHeads(const IhaShape& shape) { return std::max<size_t>(1, kIhaStripRows / shape.pseudo); }

// Mixed rows first .. first + count - 1 of `token` (row = h P + j), finished, into rows[count][stride].
struct IhaStrip {
  const IhaShape* shape;
  const IhaMix* mix;
  size_t token;
  size_t first;
  size_t count;
  float* rows;
  size_t stride;  // d rounded up to 16
};
// 16 finished rows (already of the cache type's precision) to slots 16 sub .. of a virtual key block.
struct IhaSubBlock {
  const KvLayout* layout;
  void* block;
  size_t sub;
  const float* rows;
  size_t stride;
};
}  // namespace iha::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// Row to the precision of `type`, as fp32. The row's padding is rounded too: whatever it holds is never used.
HWY_INLINE void RoundRow(StorageType type, float* x, size_t n) {
  if (type == StorageType::kF32) return;
#if IHA_FUSED
  const D d;
  const hn::RebindToUnsigned<D> du;
  for (size_t i = 0; i < n; i += kLanes) {  // RoundToBF16, lane by lane
    const V v = VLoad(x + i);
    const auto u = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
    const auto rounded = hn::And(hn::Add(u, hn::Add(odd, hn::Set(du, 0x7FFF))), hn::Set(du, 0xFFFF0000u));
    const auto nan = hn::And(hn::Or(u, hn::Set(du, 0x00400000u)), hn::Set(du, 0xFFFF0000u));
    VStore(hn::IfThenElse(hn::Eq(v, v), hn::BitCast(d, rounded), hn::BitCast(d, nan)), x + i);
  }
#else
  for (size_t i = 0; i < n; ++i) x[i] = WidenBF16(RoundToBF16(x[i]));
#endif
}

#if IHA_FUSED
// Four lanes as they are stored; bf16 values are exact in the upper halves.
using D4 = hn::CappedTag<float, 4>;
HWY_INLINE void Store4(hn::Vec<D4> v, float* to) { hn::StoreU(v, D4(), to); }
HWY_INLINE void Store4(hn::Vec<D4> v, uint16_t* to) {
  const hn::RebindToUnsigned<D4> du;
  const hn::Rebind<uint16_t, D4> d16;
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(hn::BitCast(du, v))), d16, to);
}
#endif
HWY_INLINE void Store1(float x, float* to) { *to = x; }
HWY_INLINE void Store1(float x, uint16_t* to) { *to = RoundToBF16(x); }

// Keys: [d][16], transposed four by four. Values: row by row.
template <class T>
HWY_INLINE void StoreKeys16(const IhaSubBlock& g) {
  const size_t d = g.layout->d;
  T* to = static_cast<T*>(g.block) + g.sub * d * 16;
  size_t i = 0;
#if IHA_FUSED
  const D4 d4;
  for (; i + 4 <= d; i += 4) {
    for (size_t s = 0; s < 16; s += 4) {
      const float* from = g.rows + s * g.stride + i;
      const auto a = hn::LoadU(d4, from), b = hn::LoadU(d4, from + g.stride);
      const auto c = hn::LoadU(d4, from + 2 * g.stride), e = hn::LoadU(d4, from + 3 * g.stride);
      const auto ac_low = hn::InterleaveLower(d4, a, c), ac_high = hn::InterleaveUpper(d4, a, c);
      const auto be_low = hn::InterleaveLower(d4, b, e), be_high = hn::InterleaveUpper(d4, b, e);
      Store4(hn::InterleaveLower(d4, ac_low, be_low), to + i * 16 + s);
      Store4(hn::InterleaveUpper(d4, ac_low, be_low), to + (i + 1) * 16 + s);
      Store4(hn::InterleaveLower(d4, ac_high, be_high), to + (i + 2) * 16 + s);
      Store4(hn::InterleaveUpper(d4, ac_high, be_high), to + (i + 3) * 16 + s);
    }
  }
#endif
  for (; i < d; ++i) {
    for (size_t s = 0; s < 16; ++s) Store1(g.rows[s * g.stride + i], to + i * 16 + s);
  }
}

template <class T>
HWY_INLINE void StoreValues16(const IhaSubBlock& g) {
  const size_t stride = g.layout->v_stride();
  T* to = static_cast<T*>(g.block) + g.layout->v_begin() + g.sub * 16 * stride;
  for (size_t s = 0; s < 16; ++s) {
#if IHA_FUSED
    for (size_t i = 0; i < stride; i += 4) Store4(hn::LoadU(D4(), g.rows + s * g.stride + i), to + s * stride + i);
#else
    for (size_t i = 0; i < stride; ++i) Store1(g.rows[s * g.stride + i], to + s * stride + i);
#endif
  }
}

void StoreSubBlock(const IhaSubBlock& g, bool values) {
  const bool f32 = g.layout->type == StorageType::kF32;
  if (values) return f32 ? StoreValues16<float>(g) : StoreValues16<uint16_t>(g);
  return f32 ? StoreKeys16<float>(g) : StoreKeys16<uint16_t>(g);
}

template <class R, class T>
HWY_INLINE void MixRows(const IhaStrip& g, const T* x, size_t head_stride) {
  const size_t heads = g.shape->heads;
  const auto reader = [=](size_t p) { return R{x + p * 16, 16, head_stride}; };
  const size_t tiles = (g.count + R::kMaxRows - 1) / R::kMaxRows;
  for (size_t t = 0; t < tiles; ++t) {
    const size_t r0 = g.count * t / tiles, r1 = g.count * (t + 1) / tiles;
    RunPanels<R>(static_cast<int>(r1 - r0), g.stride / 16, g.mix->alpha + (g.first + r0) * heads, heads, 1, reader,
                 g.rows + r0 * g.stride, g.stride, 0, heads, true);
  }
}

// Heads whose length is no multiple of 16: copied, so that whole lanes can be read.
template <class T>
HWY_INLINE void MixPadded(const IhaStrip& g, const T* x, size_t head_stride) {
  const size_t heads = g.shape->heads, d = g.shape->d;
  static thread_local AlignedArray<float> padded;
  static thread_local size_t capacity = 0;
  if (capacity < heads * g.stride) {
    padded = MakeAligned<float>(heads * g.stride);
    capacity = heads * g.stride;  // after it: it may throw
  }
  for (size_t m = 0; m < heads; ++m) {
    float* row = padded.get() + m * g.stride;
    std::fill(row + d, row + g.stride, 0.0f);
    for (size_t i = 0; i < d; ++i) {
      if constexpr (sizeof(T) == 4) {
        row[i] = x[m * head_stride + i];
      } else {
        row[i] = WidenBF16(x[m * head_stride + i]);
      }
    }
  }
  MixRows<ReadF32>(g, padded.get(), g.stride);
}

template <class R, class T>
HWY_INLINE void Mix(const IhaStrip& g) {
  const IhaSource& source = g.mix->source;
  const T* x = static_cast<const T*>(source.x) + g.token * source.token_stride;
  if (g.shape->d == g.stride) {
    MixRows<R>(g, x, source.head_stride);
  } else {
    MixPadded(g, x, source.head_stride);
  }
}

// row: [stride], stride >= d a multiple of 16.
HWY_INLINE void FinishRow(const IhaShape& shape, const IhaMix& mix, size_t token, size_t j, float* row, size_t stride) {
  const size_t d = shape.d, half = d / 2;
  if (mix.norm != nullptr) {
    RmsNormRow({.n = d, .eps = mix.norm_eps, .weight_plus_one = mix.norm_plus_one}, row, mix.norm, row);
  } else {
    RoundRow(mix.round, row, stride);
    if (mix.cos == nullptr || (mix.first_row == nullptr && j == 0)) return;  // r(r(y)) = r(y)
  }
  if (mix.cos != nullptr) {
    const size_t table_row = mix.first_row == nullptr ? j : size_t{mix.first_row[token]} + j * mix.row_step;
    RotateRow(mix.pairing, row, half, mix.cos + table_row * half, mix.sin + table_row * half);
  }
  RoundRow(mix.round, row, stride);
}

void MixStrip(const IhaStrip& g) {
  if (g.mix->source.type == StorageType::kF32) {
    Mix<ReadF32, float>(g);
  } else {
    Mix<ReadBF16Plain, uint16_t>(g);
  }
  for (size_t r = 0; r < g.count; ++r) {
    FinishRow(*g.shape, *g.mix, g.token, (g.first + r) % g.shape->pseudo, g.rows + r * g.stride, g.stride);
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(MixStrip);
HWY_EXPORT(StoreSubBlock);

namespace {

float* StripRows(size_t floats) {
  static thread_local AlignedArray<float> rows;
  static thread_local size_t capacity = 0;
  if (capacity < floats) {
    rows = MakeAligned<float>(floats);
    capacity = floats;  // after it: it may throw
  }
  return rows.get();
}

// Every (token, strip of heads), in parallel: f(token, first row, count).
template <class F>
void ForStrips(const IhaShape& shape, size_t tokens, ParallelFor& parallel, const F& f) {
  const size_t strip = IhaStripHeads(shape), strips = (shape.heads + strip - 1) / strip;
  const size_t work = std::min(strip, shape.heads) * shape.pseudo * shape.d * shape.heads / 16;
  ForRowChunks(tokens * strips, work, parallel, [&](size_t i0, size_t i1) {
    for (size_t i = i0; i < i1; ++i) {
      const size_t h0 = i % strips * strip, h1 = std::min(shape.heads, h0 + strip);
      f(i / strips, h0 * shape.pseudo, (h1 - h0) * shape.pseudo);
    }
  });
}

}  // namespace

void IhaMixRows(const IhaShape& shape, const IhaMix& mix, size_t tokens, float* out, ParallelFor& parallel) {
  const auto run = HWY_DYNAMIC_DISPATCH(MixStrip);
  const size_t stride = RoundUp16(shape.d), d = shape.d;
  ForStrips(shape, tokens, parallel, [&](size_t token, size_t first, size_t count) {
    float* to = out + (token * shape.heads * shape.pseudo + first) * d;
    float* rows = stride == d ? to : StripRows(count * stride);
    run({&shape, &mix, token, first, count, rows, stride});
    if (rows == to) return;
    for (size_t r = 0; r < count; ++r) std::memcpy(to + r * d, rows + r * stride, d * sizeof(float));
  });
}

void IhaMixToCache(const IhaShape& shape, const IhaMix& keys, const IhaMix& values, const KvLayout& layout,
                   size_t tokens, uint8_t* const* slices, const uint32_t* positions, ParallelFor& parallel) {
  assert(keys.round == layout.type && values.round == layout.type);
  const auto run = HWY_DYNAMIC_DISPATCH(MixStrip);
  const size_t stride = RoundUp16(shape.d), pseudo = shape.pseudo;
  ForStrips(shape, tokens, parallel, [&](size_t token, size_t first, size_t count) {
    float* rows = StripRows(count * stride);
    for (const bool value : {false, true}) {
      run({&shape, value ? &values : &keys, token, first, count, rows, stride});
      for (size_t r = 0; r < count; ++r) {
        const size_t h = (first + r) / pseudo, slot = positions[token] % kKeyBlock * pseudo + (first + r) % pseudo;
        uint8_t* block = slices[token] + (h * pseudo + slot / kKeyBlock) * layout.bytes();
        if (value) {
          StoreValue(layout, block, slot % kKeyBlock, rows + r * stride);
        } else {
          StoreKey(layout, block, slot % kKeyBlock, rows + r * stride);
        }
      }
    }
  });
}

void IhaMixBlock(const IhaShape& shape, const IhaMix& keys, const IhaMix& values, const KvLayout& layout, size_t head,
                 size_t part, size_t slots, void* block) {
  assert(keys.round == layout.type && values.round == layout.type);
  const auto run = HWY_DYNAMIC_DISPATCH(MixStrip);
  const auto store = HWY_DYNAMIC_DISPATCH(StoreSubBlock);
  const size_t stride = RoundUp16(shape.d), pseudo = shape.pseudo;
  float* rows = StripRows(16 * stride);
  for (const bool value : {false, true}) {
    for (size_t sub = 0; sub * 16 < slots; ++sub) {
      // Virtual slots of the cache block; those past `slots` keep what the scratch holds.
      const size_t begin = part * kKeyBlock + sub * 16, end = part * kKeyBlock + std::min(slots, sub * 16 + 16);
      for (size_t slot = begin; slot < end;) {
        const size_t token = slot / pseudo, j = slot % pseudo, count = std::min(pseudo - j, end - slot);
        run({&shape, value ? &values : &keys, token, head * pseudo + j, count, rows + (slot - begin) * stride, stride});
        slot += count;
      }
      store({&layout, block, sub, rows, stride}, value);
    }
  }
}

void IhaStoreBase(const IhaShape& shape, const float* x, size_t head_stride, StorageType type, void* dst) {
  for (size_t m = 0; m < shape.heads; ++m) {
    const float* from = x + m * head_stride;
    if (type == StorageType::kF32) {
      std::memcpy(static_cast<float*>(dst) + m * shape.d, from, shape.d * sizeof(float));
    } else {
      uint16_t* to = static_cast<uint16_t*>(dst) + m * shape.d;
      for (size_t i = 0; i < shape.d; ++i) to[i] = RoundToBF16(from[i]);
    }
  }
}

}  // namespace iha::kernels
#endif
