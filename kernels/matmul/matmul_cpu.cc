// Gemm with Highway: blocking and the split over threads. The arithmetic is in tile-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/matmul_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/panel_cut.h"
#include "kernels/matmul/tile-inl.h"

#ifndef IHA_KERNELS_MATMUL_CPU_ONCE
#define IHA_KERNELS_MATMUL_CPU_ONCE
namespace iha::kernels {
struct GemmJob {
  const float* a;
  size_t lda, m;
  const PackedWeights* w;
  float* c;
  size_t ldc;
  GemmTuning tuning;
};
// Rows of A side by side in even tiles (16 rows are 6 + 5 + 5, not 6 + 6 + 4).
struct RowTiles {
  size_t rows = 0, tiles = 0;
  [[nodiscard]] size_t Begin(size_t t) const { return rows * t / tiles; }
  [[nodiscard]] size_t Largest() const { return (rows + tiles - 1) / tiles; }
};
// What all threads of a product of many rows share: `a` holds `tiles` rows from `row` on, the k of one pass after the
// other, in each pass tile by tile, k-major, so that a tile's broadcasts walk one stream.
struct PackedRows {
  float* a = nullptr;
  size_t row = 0;
  RowTiles tiles;
  size_t k_block = 0;  // k of a pass
};
// A job: panels p0 .. p1 - 1, of packed rows the tiles t0 .. t1 - 1.
struct Part {
  size_t p0, p1, t0 = 0, t1 = 0;
};
inline constexpr size_t kRowBlock = 512;  // rows of A packed at a time

// Grows, never shrinks; one per thread.
class GemmScratch {
 public:
  float* Get(size_t floats) {
    if (have_ < floats) {
      data_ = MakeAligned<float>(floats);
      have_ = floats;
    }
    return data_.get();
  }

 private:
  AlignedArray<float> data_;
  size_t have_ = 0;
};
}  // namespace iha::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// Readers that start at panel p, row k of it (even for bf16 pairs).
template <class R>
struct Reader;
template <>
struct Reader<ReadF32> {
  static ReadF32 At(const PackedWeights& w, size_t p, size_t k = 0) {
    return {reinterpret_cast<const float*>(w.panel(p)) + k * 16, w.panel_bytes() / sizeof(float), 16};
  }
};
template <>
struct Reader<ReadF16> {
  static ReadF16 At(const PackedWeights& w, size_t p, size_t k = 0) {
    return {reinterpret_cast<const uint16_t*>(w.panel(p)) + k * 16, w.panel_bytes() / sizeof(uint16_t), 16};
  }
};
template <>
struct Reader<ReadBF16> {
  static ReadBF16 At(const PackedWeights& w, size_t p, size_t k = 0) {
    return {reinterpret_cast<const uint32_t*>(w.panel(p)) + k / 2 * 16, w.panel_bytes() / sizeof(uint32_t)};
  }
};
template <>
struct Reader<ReadAffine> {
  static ReadAffine At(const PackedWeights& w, size_t p, size_t k = 0) {
    return {reinterpret_cast<const AffinePanelBlock*>(w.panel(p)) + k / kAffineBlock,
            w.panel_bytes() / sizeof(AffinePanelBlock)};
  }
};

struct Scratch {
  GemmScratch last_panel, widened;
};
static Scratch& ThreadScratch() {
  static thread_local Scratch scratch;
  return scratch;
}

// The ragged last panel: through a small buffer, since C has no room for 16 columns.
template <class R>
void LastPanel(const GemmJob& g, size_t m0, size_t m1, size_t max_rows) {
  const PackedWeights& w = *g.w;
  const size_t p = w.panels() - 1;
  float* t = ThreadScratch().last_panel.Get((m1 - m0) * 16);
  const auto reader = [&](size_t) { return Reader<R>::At(w, p); };
  for (size_t m = m0; m < m1; m += max_rows) {
    const int rows = static_cast<int>(std::min(max_rows, m1 - m));
    RunPanels<R>(rows, 1, g.a + m * g.lda, g.lda, 1, reader, t + (m - m0) * 16, 16, 0, w.k(), true);
  }
  for (size_t m = m0; m < m1; ++m) {
    std::memcpy(g.c + m * g.ldc + p * 16, t + (m - m0) * 16, w.n() % 16 * sizeof(float));
  }
}

// The fetch ahead for one of `tiles` tiles that share np panels from p on: together they touch the panels that follow
// once, so that weights too large for the caches stream in behind the arithmetic.
template <class R>
HWY_INLINE Ahead NextPanels(const PackedWeights& w, size_t p, size_t np, size_t tiles, size_t tile) {
  const size_t steps = (w.k() + R::kStep - 1) / R::kStep, bytes = np * w.panel_bytes();
  const size_t tile_bytes = steps * 64;  // one line per step
  const size_t lines = (bytes + tiles * tile_bytes - 1) / (tiles * tile_bytes);
  const size_t begin = tile * lines * tile_bytes;
  if (begin >= bytes) return {};
  return {w.panel(p) + bytes + begin, static_cast<int>(lines)};
}

// k of one pass: a multiple of what a reader steps by, or all of it.
template <int kStep>
size_t KBlock(const GemmJob& g, size_t automatic) {
  return g.tuning.k_block == 0 ? automatic : (g.tuning.k_block + kStep - 1) / kStep * kStep;
}

// Where reading the weights takes longer than the arithmetic: a tile's panels lie far apart, so that each of its
// streams runs through panels that follow each other. Streams that end with their panel would be found by the
// hardware's fetching anew every few KiB, which costs a quarter of the bandwidth. Returns the first panel that is left
// over.
template <class R>
size_t SpreadPanels(const GemmJob& g, size_t p0, size_t p1) {
  const PackedWeights& w = *g.w;
  const size_t rows = g.m;
  const size_t streams = static_cast<size_t>(TilePanels(static_cast<int>(rows), R::kMaxAcc));
  const size_t length = (p1 - p0) / streams, width = streams * kPanelRows;
  alignas(64) float c[kMaxTileRows * kMaxTilePanels * kPanelRows];
  for (size_t i = 0; i < length; ++i) {
    const auto reader = [&](size_t) {
      R spread = Reader<R>::At(w, p0 + i);
      spread.panel_stride *= length;
      return spread;
    };
    const StreamsAhead<R> ahead{w.panel(p0 + i), length * w.panel_bytes()};
    RunPanels<R>(static_cast<int>(rows), streams, g.a, g.lda, 1, reader, c, width, 0, w.k(), true, ahead);
    for (size_t m = 0; m < rows; ++m) {
      for (size_t s = 0; s < streams; ++s) {
        std::memcpy(g.c + m * g.ldc + (p0 + s * length + i) * kPanelRows, c + m * width + s * kPanelRows,
                    kPanelRows * sizeof(float));
      }
    }
  }
  return p0 + streams * length;
}

// Decode: at most one tile of rows, weights are read once, straight from memory.
template <class R>
void FewRows(const GemmJob& g, size_t p0, size_t p1) {
  const PackedWeights& w = *g.w;
  const size_t rows = g.m;
  const size_t k_all = w.k();
  constexpr size_t kABytes = 24 * 1024;  // of A: what may stay in L1 beside the weights' stream
  const size_t kc =
      KBlock<R::kStep>(g, rows * k_all * 4 > kABytes ? std::max<size_t>(256, kABytes / (rows * 4) / 64 * 64) : k_all);
  // Up to two operations a byte, the hardware's own fetching is the faster one.
  if (kc >= k_all && rows * w.n() * w.k() <= w.bytes()) p0 = SpreadPanels<R>(g, p0, p1);
  const bool fetch_ahead = kc >= k_all;
  // k blocks inside a strip of panels so that C and A stay close.
  const size_t group = static_cast<size_t>(TilePanels(static_cast<int>(rows), R::kMaxAcc));
  const size_t strip = fetch_ahead ? group : kc >= k_all ? p1 - p0 : 24;
  for (size_t p = p0; p < p1; p += strip) {
    const size_t np = std::min(strip, p1 - p);
    const auto reader = [&](size_t q) { return Reader<R>::At(w, p + q); };
    const Ahead ahead = fetch_ahead && p + np < p1 ? NextPanels<R>(w, p, np, 1, 0) : Ahead{};
    for (size_t k = 0; k < k_all; k += kc) {
      RunPanels<R>(static_cast<int>(rows), np, g.a, g.lda, 1, reader, g.c + p * 16, g.ldc, k, std::min(k_all, k + kc),
                   k == 0, ahead);
    }
  }
}

// out[q * rows + r] = a[r * lda + q] for `rows` rows and kn columns.
static void PackTile(const float* HWY_RESTRICT a, size_t lda, size_t rows, size_t kn, float* HWY_RESTRICT out) {
  size_t q = 0;
#if IHA_FUSED
  // Squares of 4; the last of a column may repeat rows of the one above it.
  const hn::FixedTag<float, 4> d;
  for (; rows >= 4 && q + 4 <= kn; q += 4) {
    for (size_t r = 0; r < rows; r += 4) {
      const size_t r0 = std::min(r, rows - 4);
      const float* from = a + r0 * lda + q;
      const auto x0 = hn::LoadU(d, from), x1 = hn::LoadU(d, from + lda);
      const auto x2 = hn::LoadU(d, from + 2 * lda), x3 = hn::LoadU(d, from + 3 * lda);
      const auto even0 = hn::InterleaveLower(d, x0, x2), odd0 = hn::InterleaveLower(d, x1, x3);
      const auto even1 = hn::InterleaveUpper(d, x0, x2), odd1 = hn::InterleaveUpper(d, x1, x3);
      float* to = out + q * rows + r0;
      hn::StoreU(hn::InterleaveLower(d, even0, odd0), d, to);
      hn::StoreU(hn::InterleaveUpper(d, even0, odd0), d, to + rows);
      hn::StoreU(hn::InterleaveLower(d, even1, odd1), d, to + 2 * rows);
      hn::StoreU(hn::InterleaveUpper(d, even1, odd1), d, to + 3 * rows);
    }
  }
#endif
  for (; q < kn; ++q) {
    for (size_t r = 0; r < rows; ++r) out[q * rows + r] = a[r * lda + q];
  }
}
// Tiles t0 .. t1 - 1 of `packed`.
void PackTiles(const GemmJob& g, const PackedRows& packed, size_t t0, size_t t1) {
  const size_t k_all = g.w->k();
  for (size_t k = 0; k < k_all; k += packed.k_block) {
    const size_t kn = std::min(packed.k_block, k_all - k);
    for (size_t t = t0; t < t1; ++t) {
      const size_t r0 = packed.tiles.Begin(t), rows = packed.tiles.Begin(t + 1) - r0;
      PackTile(g.a + (packed.row + r0) * g.lda + k, g.lda, rows, kn, packed.a + packed.tiles.rows * k + r0 * kn);
    }
  }
}

// k .. k + kn - 1 of np panels in fp32: [np][kn][16]. k is a multiple of R::kStep.
template <class R>
void WidenPanels(const PackedWeights& w, size_t p, size_t np, size_t k, size_t kn, float* HWY_RESTRICT out) {
  const auto widen = [&out]<int kHalf>(const R& from, size_t i) {
    for (int j = 0; j < kVectors; ++j) VStore(from.template Load<kHalf>(i, 0, j), out + j * kLanes);
    out += kPanelRows;
  };
  for (size_t q = 0; q < np; ++q) {
    const R panel = Reader<R>::At(w, p + q, k);
    for (size_t i = 0; i < kn; i += R::kStep) {
      if constexpr (R::kStep == kAffineBlock) {
        const R block = panel.Block(i / kAffineBlock);
        for (size_t in = 0; in < std::min(kAffineBlock, kn - i); ++in) widen.template operator()<0>(block, in);
      } else {
        widen.template operator()<0>(panel, i);
        if (R::kStep == 2 && i + 1 < kn) widen.template operator()<1>(panel, i + 1);
      }
    }
  }
}

// Stored is how the weights are stored, R what the tiles read: the same, or fp32, to which a few panels at a time are
// widened once for all tiles.
template <class Stored, class R>
void ManyRows(const GemmJob& g, const PackedRows& packed, const Part& part) {
  const PackedWeights& w = *g.w;
  const RowTiles& tiles = packed.tiles;
  constexpr bool kWiden = !std::is_same_v<Stored, R>;
  const size_t k_all = w.k();
  // Panels side by side while they stay in L2: as many as the largest of the tiles takes.
  const size_t group = static_cast<size_t>(TilePanels(static_cast<int>(tiles.Largest()), R::kMaxAcc));
  for (size_t p = part.p0; p < part.p1; p += group) {
    const size_t np = std::min(group, part.p1 - p);
    for (size_t k = 0; k < k_all; k += packed.k_block) {
      const size_t kn = std::min(packed.k_block, k_all - k);
      float* wide = nullptr;
      if constexpr (kWiden) {
        wide = ThreadScratch().widened.Get(group * kn * kPanelRows);
        WidenPanels<Stored>(w, p, np, k, kn, wide);
      }
      const auto reader = [&](size_t q) {
        if constexpr (kWiden)
          return R{wide + q * kn * kPanelRows, kn * kPanelRows, kPanelRows};
        else
          return Reader<R>::At(w, p + q, k);
      };
      const bool fetch_ahead = kn == k_all && p + np < part.p1;
      for (size_t t = part.t0; t < part.t1; ++t) {
        const Ahead ahead = fetch_ahead ? NextPanels<R>(w, p, np, part.t1 - part.t0, t - part.t0) : Ahead{};
        const size_t r0 = tiles.Begin(t), rows = tiles.Begin(t + 1) - r0;
        RunPanels<R>(static_cast<int>(rows), np, packed.a + tiles.rows * k + r0 * kn, 1, rows, reader,
                     g.c + (packed.row + r0) * g.ldc + p * kPanelRows, g.ldc, 0, kn, k == 0, ahead);
      }
    }
  }
}

// Rows from which on it is cheaper to widen weights once for all tiles than in each of them.
template <class R>
size_t WidenFrom() {
  if (std::is_same_v<R, ReadF32>) return SIZE_MAX;
  if (std::is_same_v<R, ReadAffine>) return 0;
  return kLanes == 16 ? 64 : 24;
}

// Rows of a tile of a product of m rows, and whether tiles read fp32 that is widened for all of them.
struct Plan {
  size_t max_rows = 0;
  bool widen = false;
  [[nodiscard]] bool Few(size_t m) const { return m <= max_rows; }
};
template <class R>
Plan PlanOf(const GemmTuning& tuning, size_t m) {
  const auto bounded = [&](int rows) {
    return static_cast<size_t>(tuning.max_rows > 0 ? std::min(tuning.max_rows, rows) : rows);
  };
  const Plan plan{bounded(R::kMaxRows), false};
  return plan.Few(m) || m < WidenFrom<R>() ? plan : Plan{bounded(ReadF32::kMaxRows), true};
}

template <class R>
PackedRows LayOutRowsOf(const GemmJob& g, size_t row, size_t rows) {
  const size_t max_rows = PlanOf<R>(g.tuning, g.m).max_rows, k_all = g.w->k();
  // Long k blocks win up to 2048 (C is loaded and stored less often); equal ones, a multiple of 32.
  constexpr size_t kLongestBlock = 2048;
  const size_t passes = (k_all + kLongestBlock - 1) / kLongestBlock;
  return {.row = row,
          .tiles = {rows, (rows + max_rows - 1) / max_rows},
          .k_block = KBlock<R::kStep>(g, ((k_all + passes - 1) / passes + 31) / 32 * 32)};
}

template <class R>
void GemmPartOf(const GemmJob& g, const PackedRows* packed, Part part) {
  const Plan plan = PlanOf<R>(g.tuning, g.m);
  if (part.p1 == g.w->panels() && g.w->n() % kPanelRows != 0) {
    const size_t m0 = packed == nullptr ? 0 : packed->row + packed->tiles.Begin(part.t0);
    const size_t m1 = packed == nullptr ? g.m : packed->row + packed->tiles.Begin(part.t1);
    LastPanel<R>(g, m0, m1, std::min<size_t>(plan.max_rows, R::kMaxRows));
    if (--part.p1 == part.p0) return;
  }
  if (packed == nullptr) return FewRows<R>(g, part.p0, part.p1);
  if (plan.widen) return ManyRows<R, ReadF32>(g, *packed, part);
  if constexpr (!std::is_same_v<R, ReadAffine>) ManyRows<R, R>(g, *packed, part);
}

// f<reader of the weights>().
template <class F>
auto WithReader(WeightForm form, const F& f) {
  switch (form) {
    case WeightForm::kAffine:
      return f.template operator()<ReadAffine>();
    case WeightForm::kF32:
      return f.template operator()<ReadF32>();
    case WeightForm::kBF16:
      return f.template operator()<ReadBF16>();
    case WeightForm::kF16:
      break;
  }
  return f.template operator()<ReadF16>();
}

bool IsFew(const GemmJob& g) {
  return WithReader(g.w->form(), [&]<class R>() { return PlanOf<R>(g.tuning, g.m).Few(g.m); });
}
PackedRows LayOutRows(const GemmJob& g, size_t row, size_t rows) {
  return WithReader(g.w->form(), [&]<class R>() { return LayOutRowsOf<R>(g, row, rows); });
}
// A part of the rows that are packed, or panels for all rows where these are few (null).
void GemmPart(const GemmJob& g, const PackedRows* packed, const Part& part) {
  WithReader(g.w->form(), [&]<class R>() { GemmPartOf<R>(g, packed, part); });
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(IsFew);
HWY_EXPORT(LayOutRows);
HWY_EXPORT(PackTiles);
HWY_EXPORT(GemmPart);

void Gemm(const float* a, size_t lda, size_t m, const PackedWeights& w, float* c, size_t ldc, ParallelFor& parallel,
          const GemmTuning& tuning) {
  assert(lda >= w.k() && ldc >= w.n());
  assert(tuning.k_block % 2 == 0);
  if (m == 0 || w.n() == 0) return;
  if (w.k() == 0) {
    for (size_t row = 0; row < m; ++row) std::fill_n(c + row * ldc, w.n(), 0.0f);
    return;
  }
  const GemmJob job{a, lda, m, &w, c, ldc, tuning};
  const auto part = HWY_DYNAMIC_DISPATCH(GemmPart);
  const size_t threads = static_cast<size_t>(parallel.Threads());
  // Jobs are handed out as threads come free; a few per thread so that a slow core does not hold up the rest, and as
  // many for each, so that equally fast ones end together. One row of a small matrix is some microseconds: more jobs
  // would only shorten its streams.
  const size_t rounds = threads == 1 ? 1 : w.n() * w.k() > (4u << 20) ? 8 : m == 1 ? 1 : 2;
  const PanelCut cut(w.panels(), threads, rounds);
  if (HWY_DYNAMIC_DISPATCH(IsFew)(job)) {
    parallel.Run(cut.jobs(), [&](size_t j, int) { part(job, nullptr, {cut.Begin(j), cut.Begin(j + 1)}); });
    return;
  }

  // Rows are packed once for all threads. Narrow matrices have fewer jobs than there are threads: these share the rows.
  static thread_local GemmScratch scratch;
  const auto pack = HWY_DYNAMIC_DISPATCH(PackTiles);
  const size_t row_block = tuning.row_block != 0 ? tuning.row_block : kRowBlock;
  const size_t blocks = (m + row_block - 1) / row_block;
  for (size_t b = 0; b < blocks; ++b) {
    const size_t row = m * b / blocks, rows = m * (b + 1) / blocks - row;
    PackedRows packed = HWY_DYNAMIC_DISPATCH(LayOutRows)(job, row, rows);
    packed.a = scratch.Get(rows * w.k());
    const size_t tiles = packed.tiles.tiles, pieces = std::min(tiles, threads);
    parallel.Run(pieces, [&](size_t j, int) { pack(job, packed, tiles * j / pieces, tiles * (j + 1) / pieces); });
    const size_t row_parts = std::clamp<size_t>(threads / cut.jobs(), 1, tiles);
    parallel.Run(cut.jobs() * row_parts, [&](size_t j, int) {
      const size_t p = j / row_parts, r = j % row_parts;
      part(job, &packed, {cut.Begin(p), cut.Begin(p + 1), tiles * r / row_parts, tiles * (r + 1) / row_parts});
    });
  }
}

}  // namespace iha::kernels
#endif
