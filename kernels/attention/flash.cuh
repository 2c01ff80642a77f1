// flash.cuh: the kernels behind attention_gpu.h.
//
// A block: kWarps warps of 16 query rows each, one head of one sequence. Shared memory: q (later the output), then two
// stages of 64 keys and 64 values that cp.async fills while the other is in use; rows of 16-byte chunks, chunk c of row
// r at c ^ (r mod 8), so that ldmatrix meets no bank twice.
#pragma once

#include "kernels/attention/attention_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kKeys = kGpuKeyBlock;
constexpr float kNone = -INFINITY;
constexpr float kLog2E = 1.44269504088896341f;

// What a block works on.
struct FlashTile {
  uint32_t head = 0;
  uint32_t sequence = 0;
  uint32_t first_row = 0;  // of the tile, within q
  uint32_t rows = 0;       // in the tile
  uint32_t position = 0;   // of its first row
  uint32_t keys = 0;       // kv_length
  uint32_t begin = 0;      // key blocks that a row of the tile sees: begin .. end - 1
  uint32_t end = 0;
  uint32_t piece = 0;
};

// Rows `at` .. of the block's sequence, kRows at most; none if it has no such row.
template <uint32_t kRows>
IHA_DEVICE FlashTile TileAt(const AttentionGpuArgs& p, uint32_t at) {
  FlashTile t;
  t.head = ptx::BlockY();
  t.sequence = ptx::BlockZ();
  const ptx::Global<const uint32_t> begins(p.q_begin), lengths(p.kv_length);
  const uint32_t begin = ptx::Load(begins + t.sequence), rows = ptx::Load(begins + (t.sequence + 1)) - begin;
  if (at >= rows) return t;
  t.first_row = begin + at;
  t.rows = rows - at < kRows ? rows - at : kRows;
  t.keys = ptx::Load(lengths + t.sequence);
  t.position = t.keys - rows + at;
  const uint32_t last = VisibleTo(p.mask, t.position + t.rows - 1).last;
  t.begin = VisibleTo(p.mask, t.position).first / kKeys;
  t.end = (last < t.keys ? last : t.keys - 1) / kKeys + 1;
  return t;
}

template <uint32_t kWarps, bool kSplit>
IHA_DEVICE FlashTile TileOf(const AttentionGpuArgs& p) {
  FlashTile t = TileAt<kWarps * 16>(p, kSplit ? 0 : ptx::BlockX() * kWarps * 16);
  if constexpr (kSplit) {  // the blocks of this piece
    t.piece = ptx::BlockX();
    const uint32_t blocks = p.split_keys / kKeys, first = t.piece * blocks;
    t.begin = t.begin > first ? t.begin : first;
    t.end = t.end < first + blocks ? t.end : first + blocks;
    if (t.begin >= t.end) t.rows = 0;
  }
  return t;
}

// `rows` rows of kColumns at `from` + r * stride to shared memory at byte `to`; zeros where r >= valid.
template <uint32_t kColumns, uint32_t kRows, uint32_t kThreads>
IHA_DEVICE void CopyRows(uint32_t to, ptx::Global<const uint16_t> from, size_t stride, uint32_t valid) {
  constexpr uint32_t kChunks = kColumns / 8;
  for (uint32_t i = ptx::ThreadX(); i < kRows * kChunks; i += kThreads) {
    const uint32_t row = i / kChunks, chunk = i % kChunks;
    const auto at = ptx::DynamicShared<uint16_t>(to + TileChunk<kColumns>(row, chunk));
    const bool in = row < valid;
    ptx::CpAsyncFill<16>(at, in ? from + (row * stride + chunk * 8) : from, in ? 16 : 0);
  }
}

// The row of the pools of keys and values that key block `block` of the tile begins at.
IHA_DEVICE size_t PageRow(const AttentionGpuArgs& p, const FlashTile& t, uint32_t block) {
  const ptx::Global<const int32_t> table(p.page_table);
  const int32_t page = ptx::Load(table + (size_t{t.sequence} * p.pages_per_sequence + block));
  return (static_cast<size_t>(page) * p.kv_heads + t.head / (p.heads / p.kv_heads)) * kKeys;
}

// Element of split_out (and half that of split_sums) where a piece of a row begins, in units of its row.
IHA_DEVICE size_t PieceRow(const AttentionGpuArgs& p, uint32_t piece, uint32_t row, uint32_t head) {
  return (size_t{piece} * p.rows + row) * p.heads + head;
}

// What two rows of a lane see, and what they have seen so far.
struct SoftmaxRows {
  uint32_t first[2];
  uint32_t last[2];
  float m[2] = {kNone, kNone};
  float l[2] = {0.0f, 0.0f};
};

IHA_DEVICE void RowsOfLane(const AttentionGpuArgs& p, const FlashTile& t, SoftmaxRows& rows) {
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    const uint32_t row = ptx::WarpIndex() * 16 + ptx::Lane() / 4 + part * 8;
    const VisibleKeys v = VisibleTo(p.mask, t.position + (row < t.rows ? row : t.rows - 1));
    rows.first[part] = v.first;
    rows.last[part] = v.last < t.keys ? v.last : t.keys - 1;
  }
}

// Blocks that a row of this warp sees; the others change nothing, so the warp leaves them out.
struct WarpSight {
  uint32_t from, to;  // none: from > to
  [[nodiscard]] IHA_DEVICE bool Sees(uint32_t block) const { return block >= from && block <= to; }
};
IHA_DEVICE WarpSight SightOfWarp(const AttentionGpuArgs& p, const FlashTile& t) {
  const uint32_t warp_row = ptx::WarpIndex() * 16;
  if (warp_row >= t.rows) return {1, 0};
  const uint32_t warp_last = warp_row + 15 < t.rows ? warp_row + 15 : t.rows - 1;
  return {VisibleTo(p.mask, t.position + warp_row).first / kKeys,
          VisibleTo(p.mask, t.position + warp_last).last / kKeys};
}

// Whether all rows of the tile see all keys of the block.
IHA_DEVICE bool AllSee(const AttentionGpuArgs& p, const FlashTile& t, uint32_t block) {
  return VisibleTo(p.mask, t.position + t.rows - 1).first <= block * kKeys &&
         VisibleTo(p.mask, t.position).last >= block * kKeys + kKeys - 1;
}

template <uint32_t kD, uint32_t kDv, uint32_t kWarps>
struct Flash {
  static constexpr uint32_t kThreads = kWarps * 32;
  static constexpr uint32_t kQBytes = kWarps * 16 * (kD > kDv ? kD : kDv) * 2;
  static constexpr uint32_t kKBytes = kKeys * kD * 2;
  static constexpr uint32_t kStageBytes = kKeys * (kD + kDv) * 2;

  IHA_DEVICE static void LoadKeys(const AttentionGpuArgs& p, const FlashTile& t, uint32_t block) {
    const size_t row = PageRow(p, t, block);
    // Values twice as wide as keys: the pair's, which begins where the even head's keys do.
    const size_t value_row = kDv == kD ? row : row - t.head / (p.heads / p.kv_heads) % 2 * kKeys;
    const uint32_t left = t.keys - block * kKeys, valid = left < kKeys ? left : kKeys;
    const uint32_t to = kQBytes + block % 2 * kStageBytes;
    CopyRows<kD, kKeys, kThreads>(to, ptx::Global<const uint16_t>(p.k_pages) + row * kD, kD, valid);
    CopyRows<kDv, kKeys, kThreads>(to + kKBytes, ptx::Global<const uint16_t>(p.v_pages) + value_row * kD, kDv, valid);
    ptx::CpCommit();
  }

  // s[n]: keys 8 n .. 8 n + 7 of the block. q is read again from shared memory: its registers are worth more elsewhere.
  IHA_DEVICE static void Scores(uint32_t keys, float (&s)[kKeys / 8][4]) {
    const uint32_t lane = ptx::Lane(), warp_row = ptx::WarpIndex() * 16;
    IHA_UNROLL_BY_TWO
    for (uint32_t k = 0; k < kD / 16; ++k) {
      uint32_t q[4];
      ptx::LdMatrix<4, false>(q, ptx::DynamicShared<uint16_t>(TileChunk<kD>(warp_row + lane % 16, k * 2 + lane / 16)));
      IHA_UNROLL
      for (uint32_t n = 0; n < kKeys / 16; ++n) {
        uint32_t r[4];
        const uint32_t row = n * 16 + lane % 8 + lane / 16 * 8, chunk = k * 2 + lane / 8 % 2;
        ptx::LdMatrix<4, false>(r, ptx::DynamicShared<uint16_t>(keys + TileChunk<kD>(row, chunk)));
        const uint32_t low[2] = {r[0], r[1]}, high[2] = {r[2], r[3]};
        ptx::MmaBF16(s[2 * n], q, low);
        ptx::MmaBF16(s[2 * n + 1], q, high);
      }
    }
  }

  // bf16 weights of keys 16 n .. 16 n + 15, as the A operand of an mma.
  IHA_DEVICE static void Weights(const float (&s)[kKeys / 8][4], uint32_t n, uint32_t (&a)[4]) {
    a[0] = ptx::PackBF16(s[2 * n][0], s[2 * n][1]);
    a[1] = ptx::PackBF16(s[2 * n][2], s[2 * n][3]);
    a[2] = ptx::PackBF16(s[2 * n + 1][0], s[2 * n + 1][1]);
    a[3] = ptx::PackBF16(s[2 * n + 1][2], s[2 * n + 1][3]);
  }

  // o += bf16(s) V.
  IHA_DEVICE static void AddValues(uint32_t values, const float (&s)[kKeys / 8][4], float (&o)[kDv / 8][4]) {
    IHA_UNROLL
    for (uint32_t n = 0; n < kKeys / 16; ++n) {
      uint32_t a[4];
      Weights(s, n, a);
      IHA_UNROLL
      for (uint32_t i = 0; i < kDv / 16; ++i) {
        uint32_t b[4];
        const uint32_t row = n * 16 + ptx::Lane() % 16, chunk = i * 2 + ptx::Lane() / 16;
        ptx::LdMatrix<4, true>(b, ptx::DynamicShared<uint16_t>(values + TileChunk<kDv>(row, chunk)));
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        ptx::MmaBF16(o[2 * i], a, left);
        ptx::MmaBF16(o[2 * i + 1], a, right);
      }
    }
  }

  // Whether a value of the block is not finite; the same answer in all lanes.
  IHA_DEVICE static bool AnyNotFinite(uint32_t values) {
    bool found = false;
    for (uint32_t i = ptx::Lane(); i < kKeys * (kDv / 8); i += 32) {
      const auto eight = ptx::LoadAs<Eight16>(ptx::DynamicShared<uint16_t>(values + i * 16));
      for (uint32_t pair : eight.v) {
        found |= (pair & 0x7F80u) == 0x7F80u || (pair & 0x7F800000u) == 0x7F800000u;
      }
    }
    return ptx::Any(ptx::kAllLanes, found);
  }

  // Block `block` has values that are not finite, and rows that do not see all of it: 0 times such a value would reach
  // them. So what these values come to is added to the sums of the rows that see them, and Finite takes them out before
  // AddValues: a weight above 0 keeps their sign, one below 0 (kSigned) turns it, one of 0 makes NaN of them.
  template <bool kSigned>
  IHA_DEVICE static void AddNotFinite(uint32_t block, uint32_t values, const SoftmaxRows& rows,
                                      const float (&s)[kKeys / 8][4], float (&o)[kDv / 8][4]) {
    IHA_UNROLL
    for (uint32_t part = 0; part < 2; ++part) {
      uint32_t above[2] = {}, below[2] = {}, zero[2] = {};  // a bit for each key of the block, of this lane's row
      IHA_UNROLL
      for (uint32_t n = 0; n < kKeys / 8; ++n) {
        for (uint32_t e = 0; e < 2; ++e) {
          const uint32_t at = n * 8 + ptx::Lane() % 4 * 2 + e, bit = 1u << at % 32, key = block * kKeys + at;
          const uint32_t weight = ptx::PackBF16(s[n][2 * part + e], 0.0f) & 0xFFFFu;
          if (key < rows.first[part] || key > rows.last[part]) continue;
          if ((weight & 0x7FFFu) == 0) {
            zero[n / 4] |= bit;
          } else if (kSigned && weight >= 0x8000u) {
            below[n / 4] |= bit;
          } else {
            above[n / 4] |= bit;
          }
        }
      }
      IHA_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        for (uint32_t step = 1; step <= 2; step *= 2) {
          above[half] |= ptx::ShflXor(ptx::kAllLanes, above[half], step);
          zero[half] |= ptx::ShflXor(ptx::kAllLanes, zero[half], step);
          if constexpr (kSigned) below[half] |= ptx::ShflXor(ptx::kAllLanes, below[half], step);
        }
      }
      IHA_UNROLL
      for (uint32_t i = 0; i < kDv / 8; ++i) {
        const uint32_t kinds =
            KindsOf(values, i, 0, above[0], below[0], zero[0]) | KindsOf(values, i, 32, above[1], below[1], zero[1]);
        IHA_UNROLL
        for (uint32_t e = 0; e < 2; ++e) {
          const uint32_t kind = kinds >> (2 * e) & 3u;
          o[i][2 * part + e] += kind == 0 ? 0.0f : kind == 1 ? INFINITY : kind == 2 ? -INFINITY : NAN;
        }
      }
    }
  }
  // What 32 keys from `key` on add to the lane's two columns of tile i, 2 bits each: 1 infinity, 2 its negative, 3 NaN.
  IHA_DEVICE static uint32_t KindsOf(uint32_t values, uint32_t i, uint32_t key, uint32_t above, uint32_t below,
                                     uint32_t zero) {
    uint32_t kinds = 0;
    IHA_UNROLL_NEVER
    for (uint32_t j = 0; j < 32; ++j) {
      const uint32_t at = values + TileChunk<kDv>(key + j, i) + ptx::Lane() % 4 * 4;
      const uint32_t pair = ptx::Load(ptx::DynamicShared<uint32_t>(at));
      for (uint32_t e = 0; e < 2; ++e) {
        const uint32_t value = pair >> (16 * e) & 0xFFFFu;
        if ((value & 0x7F80u) != 0x7F80u) continue;
        const uint32_t plain = (value & 0x7Fu) != 0 ? 3u
                               : value < 0x8000u    ? 1u
                                                    : 2u,
                       turned = plain == 3 ? 3u : plain ^ 3u;
        kinds |= ((above >> j & 1u) * plain | (below >> j & 1u) * turned | (zero >> j & 1u) * 3u) << (2 * e);
      }
    }
    return kinds;
  }
  // Values that are not finite become 0; by all threads, between barriers.
  IHA_DEVICE static void Finite(uint32_t values) {
    for (uint32_t i = ptx::ThreadX(); i < kKeys * (kDv / 8); i += kThreads) {
      const auto at = ptx::DynamicShared<uint16_t>(values + i * 16);
      auto eight = ptx::LoadAs<Eight16>(at);
      for (uint32_t& pair : eight.v) {
        if ((pair & 0x7F80u) == 0x7F80u) pair &= 0xFFFF0000u;
        if ((pair & 0x7F800000u) == 0x7F800000u) pair &= 0xFFFFu;
      }
      ptx::StoreAs(at, eight);
    }
  }

  // A piece's sums, as they are.
  IHA_DEVICE static void WritePiece(const AttentionGpuArgs& p, const FlashTile& t, const float (&o)[kDv / 8][4],
                                    const SoftmaxRows& rows) {
    const uint32_t lane = ptx::Lane();
    const ptx::Global<float> out(p.split_out), sums(p.split_sums);
    IHA_UNROLL
    for (uint32_t part = 0; part < 2; ++part) {
      const uint32_t row = ptx::WarpIndex() * 16 + lane / 4 + part * 8;
      if (row >= t.rows) continue;
      const size_t at = PieceRow(p, t.piece, t.first_row + row, t.head);
      if (lane % 4 == 0) ptx::StoreAs(sums + at * 2, ptx::Pack<float, 2>{{rows.m[part], rows.l[part]}});
      IHA_UNROLL
      for (uint32_t n = 0; n < kDv / 8; ++n) {
        ptx::StoreAs(out + (at * kDv + n * 8 + lane % 4 * 2),
                     ptx::Pack<float, 2>{{o[n][2 * part], o[n][2 * part + 1]}});
      }
    }
  }

  // Rows group and group + 8 of the warp, to bf16 in shared memory, then out in chunks of 16 bytes.
  IHA_DEVICE static void Write(const AttentionGpuArgs& p, const FlashTile& t, const float (&o)[kDv / 8][4],
                               const float (&m)[2], const float (&l)[2]) {
    const uint32_t lane = ptx::Lane(), warp_row = ptx::WarpIndex() * 16;
    IHA_UNROLL
    for (uint32_t part = 0; part < 2; ++part) {
      const uint32_t row = warp_row + lane / 4 + part * 8;
      const float divisor = l[part];
      IHA_UNROLL
      for (uint32_t n = 0; n < kDv / 8; ++n) {
        const uint32_t pair = ptx::PackBF16(o[n][2 * part] / divisor, o[n][2 * part + 1] / divisor);
        ptx::Store(ptx::DynamicShared<uint32_t>(TileChunk<kDv>(row, n) + lane % 4 * 4), pair);
      }
      if (p.lse != nullptr && lane % 4 == 0 && row < t.rows) {
        const size_t at = size_t{t.first_row + row} * p.heads + t.head;
        ptx::Store(ptx::Global<float>(p.lse) + at, fmaf(m[part], p.scale, logf(divisor)));
      }
    }
    ptx::SyncWarp();
    const ptx::Global<uint16_t> out(p.out);
    constexpr uint32_t kChunks = kDv / 8;
    for (uint32_t i = lane; i < 16 * kChunks; i += 32) {
      const uint32_t row = warp_row + i / kChunks, chunk = i % kChunks;
      if (row >= t.rows) continue;
      ptx::StoreAs(out + ((size_t{t.first_row + row} * p.heads + t.head) * kDv + chunk * 8),
                   ptx::LoadAs<Eight16>(ptx::DynamicShared<uint16_t>(TileChunk<kDv>(row, chunk))));
    }
  }
};

// Scores to weights; `rescale` is what the earlier blocks count from now on.
template <uint32_t kTiles>
IHA_DEVICE void Softmax(uint32_t block, float c, SoftmaxRows& rows, float (&s)[kTiles][4], float (&rescale)[2]) {
  const uint32_t key = block * kKeys + ptx::Lane() % 4 * 2;
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    float m = rows.m[part];
    IHA_UNROLL
    for (uint32_t n = 0; n < kTiles; ++n) {
      for (uint32_t e = 0; e < 2; ++e) {
        float& score = s[n][2 * part + e];
        const uint32_t j = key + n * 8 + e;
        if (j < rows.first[part] || j > rows.last[part]) score = kNone;
        m = score > m || score != score ? score : m;  // a NaN stays
      }
    }
    for (uint32_t step = 1; step <= 2; step *= 2) {
      const float other = ptx::ShflXor(ptx::kAllLanes, m, step);
      m = other > m || other != other ? other : m;
    }
    const float zero = m == kNone ? 0.0f : m;  // nothing seen yet: weights 0, not NaN
    rescale[part] = ptx::Exp2((rows.m[part] - zero) * c);
    float l = rows.l[part] * rescale[part];
    const float shift = -(zero * c);
    IHA_UNROLL
    for (uint32_t n = 0; n < kTiles; ++n) {
      for (uint32_t e = 0; e < 2; ++e) {
        s[n][2 * part + e] = ptx::Exp2(fmaf(s[n][2 * part + e], c, shift));
        l += s[n][2 * part + e];
      }
    }
    rows.m[part] = m;
    rows.l[part] = l;
  }
}

template <uint32_t kD, uint32_t kDv, uint32_t kWarps, bool kSplit>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kWarps * 32, kWarps == 4 && kD + kDv <= 128 ? 3 : 1)
    FlashForward(AttentionGpuArgs p) {
  using F = Flash<kD, kDv, kWarps>;
  const FlashTile t = TileOf<kWarps, kSplit>(p);
  if (t.rows == 0) return;
  const ptx::Global<const uint16_t> queries(p.q);
  CopyRows<kD, kWarps * 16, F::kThreads>(0, queries + (size_t{t.first_row} * p.heads + t.head) * kD,
                                         size_t{p.heads} * kD, t.rows);
  F::LoadKeys(p, t, t.begin);

  SoftmaxRows rows;
  RowsOfLane(p, t, rows);
  const WarpSight sight = SightOfWarp(p, t);

  float o[kDv / 8][4] = {};
  for (uint32_t block = t.begin; block < t.end; ++block) {
    if (block + 1 < t.end) {
      F::LoadKeys(p, t, block + 1);
      ptx::CpWait<1>();
    } else {
      ptx::CpWait<0>();
    }
    ptx::SyncThreads();
    const uint32_t stage = F::kQBytes + block % 2 * F::kStageBytes, values = stage + F::kKBytes;
    const bool sees = sight.Sees(block);
    float s[kKeys / 8][4] = {};
    if (sees) {
      F::Scores(stage, s);
      float rescale[2];
      Softmax(block, p.scale * kLog2E, rows, s, rescale);
      IHA_UNROLL
      for (uint32_t n = 0; n < kDv / 8; ++n) {
        for (uint32_t e = 0; e < 4; ++e) o[n][e] *= rescale[e / 2];
      }
    }
    if (!AllSee(p, t, block) && F::AnyNotFinite(values)) {  // the same in all warps
      if (sees) F::template AddNotFinite<false>(block, values, rows, s, o);
      ptx::SyncThreads();
      F::Finite(values);
      ptx::SyncThreads();
    }
    if (sees) F::AddValues(values, s, o);
    ptx::SyncThreads();
  }
  if (ptx::WarpIndex() * 16 >= t.rows) return;
  for (uint32_t part = 0; part < 2; ++part) rows.l[part] = SumLanes(rows.l[part], 4);
  if constexpr (kSplit) {
    F::WritePiece(p, t, o, rows);
  } else {
    F::Write(p, t, o, rows.m, rows.l);
  }
}

// A block a row and head, a thread a column: the pieces that the row sees, in increasing order.
template <uint32_t kDv>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kDv, 1) FlashMerge(AttentionGpuArgs p) {
  const uint32_t head = ptx::BlockY(), sequence = ptx::BlockZ();
  const ptx::Global<const uint32_t> begins(p.q_begin), lengths(p.kv_length);
  const uint32_t begin = ptx::Load(begins + sequence), rows = ptx::Load(begins + (sequence + 1)) - begin;
  if (ptx::BlockX() >= rows) return;
  const uint32_t keys = ptx::Load(lengths + sequence), row = begin + ptx::BlockX();
  const VisibleKeys v = VisibleTo(p.mask, keys - rows + ptx::BlockX());
  const uint32_t first = v.first / p.split_keys, last = (v.last < keys ? v.last : keys - 1) / p.split_keys;
  const ptx::Global<const float> sums(p.split_sums), parts(p.split_out);
  float m = kNone;
  for (uint32_t piece = first; piece <= last; ++piece) {
    const float other = ptx::Load(sums + PieceRow(p, piece, row, head) * 2);
    m = other > m || other != other ? other : m;
  }
  const float zero = m == kNone ? 0.0f : m, c = p.scale * kLog2E;
  float l = 0.0f, o = 0.0f;
  for (uint32_t piece = first; piece <= last; ++piece) {
    const size_t at = PieceRow(p, piece, row, head);
    const auto pair = ptx::LoadAs<ptx::Pack<float, 2>>(sums + at * 2);
    const float weight = ptx::Exp2((pair.v[0] - zero) * c);
    l = fmaf(pair.v[1], weight, l);
    o = fmaf(ptx::Load(parts + (at * kDv + ptx::ThreadX())), weight, o);
  }
  const size_t to = size_t{row} * p.heads + head;
  ptx::Store(ptx::Global<uint16_t>(p.out) + (to * kDv + ptx::ThreadX()), ptx::FloatToBF16(o / l));
  if (p.lse != nullptr && ptx::ThreadX() == 0) ptx::Store(ptx::Global<float>(p.lse) + to, fmaf(m, p.scale, logf(l)));
}

}  // namespace

template <uint32_t kD, uint32_t kDv, uint32_t kWarps, bool kSplit>
GpuStatus LaunchFlash(const AttentionGpuArgs& args, GpuStream stream) {
  static_assert(!kSplit || kGpuSplitRows <= 4 * 16);  // one tile of rows a piece
  const uint32_t tiles = (args.max_rows + kWarps * 16 - 1) / (kWarps * 16);
  const LaunchShape shape{kSplit ? AttentionGpuPieces(args) : tiles, args.heads, args.sequences, kWarps * 32,
                          AttentionGpuSharedBytes(kWarps, kD, kDv)};
  return LaunchKernel(kSplit ? "attention_split" : "attention", FlashForward<kD, kDv, kWarps, kSplit>, shape, stream,
                      args);
}

template <uint32_t kDv>
GpuStatus LaunchFlashMerge(const AttentionGpuArgs& args, GpuStream stream) {
  const LaunchShape shape{args.max_rows, args.heads, args.sequences, kDv, 0};
  return LaunchKernel("attention_merge", FlashMerge<kDv>, shape, stream, args);
}

}  // namespace iha::kernels
