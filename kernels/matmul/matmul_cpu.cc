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
#include <memory>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/panel_cut.h"
#include "kernels/matmul/tile-inl.h"

#ifndef IHA_KERNELS_MATMUL_CPU_ONCE
#define IHA_KERNELS_MATMUL_CPU_ONCE
namespace iha::kernels {
struct GemmJob {
  const float* a;
  size_t lda;
  const PackedWeights* w;
  float* c;
  size_t ldc;
  GemmTuning tuning;
  std::shared_ptr<const char> call;  // names this call: no other has the pointer while a thread keeps it
};
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
  GemmScratch a, last_panel, widened;
  // What `a` holds, if anything: rows from `row` on of call `call`, all k. A thread takes several jobs of a call, and
  // where these are panels they share the rows.
  std::shared_ptr<const char> call;
  size_t row = 0, rows = 0;
};
static Scratch& ThreadScratch() {
  static thread_local Scratch scratch;
  return scratch;
}

// The ragged last panel: through a small buffer, since C has no room for 16 columns.
template <class R>
void LastPanel(const GemmJob& g, size_t m0, size_t m1, int max_rows) {
  const PackedWeights& w = *g.w;
  const size_t p = w.panels() - 1;
  float* t = ThreadScratch().last_panel.Get((m1 - m0) * 16);
  const auto reader = [&](size_t) { return Reader<R>::At(w, p); };
  for (size_t m = m0; m < m1; m += max_rows) {
    const int rows = static_cast<int>(std::min<size_t>(max_rows, m1 - m));
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
size_t SpreadPanels(const GemmJob& g, size_t m0, size_t rows, size_t p0, size_t p1) {
  const PackedWeights& w = *g.w;
  const size_t streams = static_cast<size_t>(TilePanels(static_cast<int>(rows), R::kMaxAcc));
  const size_t length = (p1 - p0) / streams, width = streams * kPanelRows;
  alignas(64) float c[kMaxTileRows * kMaxTilePanels * kPanelRows];
  for (size_t i = 0; i < length; ++i) {
    const auto reader = [&](size_t) {
      R spread = Reader<R>::At(w, p0 + i);
      spread.panel_stride *= length;
      return spread;
    };
    RunPanels<R>(static_cast<int>(rows), streams, g.a + m0 * g.lda, g.lda, 1, reader, c, width, 0, w.k(), true);
    for (size_t m = 0; m < rows; ++m) {
      for (size_t s = 0; s < streams; ++s) {
        std::memcpy(g.c + (m0 + m) * g.ldc + (p0 + s * length + i) * kPanelRows, c + m * width + s * kPanelRows,
                    kPanelRows * sizeof(float));
      }
    }
  }
  return p0 + streams * length;
}

// Decode: at most one tile of rows, weights are read once, straight from memory.
template <class R>
void FewRows(const GemmJob& g, size_t m0, size_t rows, size_t p0, size_t p1) {
  const PackedWeights& w = *g.w;
  const size_t k_all = w.k();
  constexpr size_t kABytes = 24 * 1024;  // of A: what may stay in L1 beside the weights' stream
  const size_t kc =
      KBlock<R::kStep>(g, rows * k_all * 4 > kABytes ? std::max<size_t>(256, kABytes / (rows * 4) / 64 * 64) : k_all);
  // Up to two operations a byte, the hardware's own fetching is the faster one.
  if (kc >= k_all && rows * w.n() * w.k() <= w.bytes()) p0 = SpreadPanels<R>(g, m0, rows, p0, p1);
  const bool fetch_ahead = kc >= k_all;
  // k blocks inside a strip of panels so that C and A stay close.
  const size_t group = static_cast<size_t>(TilePanels(static_cast<int>(rows), R::kMaxAcc));
  const size_t strip = fetch_ahead ? group : kc >= k_all ? p1 - p0 : 24;
  for (size_t p = p0; p < p1; p += strip) {
    const size_t np = std::min(strip, p1 - p);
    const auto reader = [&](size_t q) { return Reader<R>::At(w, p + q); };
    const Ahead ahead = fetch_ahead && p + np < p1 ? NextPanels<R>(w, p, np, 1, 0) : Ahead{};
    for (size_t k = 0; k < k_all; k += kc) {
      RunPanels<R>(static_cast<int>(rows), np, g.a + m0 * g.lda, g.lda, 1, reader, g.c + m0 * g.ldc + p * 16, g.ldc, k,
                   std::min(k_all, k + kc), k == 0, ahead);
    }
  }
}

// Rows of a block in even tiles (16 rows are 6 + 5 + 5, not 6 + 6 + 4), each packed k-major so that a tile's broadcasts
// walk one stream.
struct RowTiles {
  size_t rows, tiles;
  size_t Begin(size_t t) const { return rows * t / tiles; }
};
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
static void PackTiles(const GemmJob& g, size_t row0, const RowTiles& tiles, size_t k, size_t kn, float* out) {
  for (size_t t = 0; t < tiles.tiles; ++t) {
    const size_t r0 = tiles.Begin(t), rows = tiles.Begin(t + 1) - r0;
    PackTile(g.a + (row0 + r0) * g.lda + k, g.lda, rows, kn, out + r0 * kn);
  }
}

// k .. k + kn - 1 of np panels in fp32: [np][kn][16]. k is a multiple of 16.
static void WidenPanels(const PackedWeights& w, size_t p, size_t np, size_t k, size_t kn, float* HWY_RESTRICT out) {
  for (size_t q = 0; q < np; ++q) {
    const ReadAffine reader = Reader<ReadAffine>::At(w, p + q, k);
    for (size_t b = 0; b * kAffineBlock < kn; ++b) {
      const ReadAffine block = reader.Block(b);
      const size_t count = std::min(kAffineBlock, kn - b * kAffineBlock);
      for (size_t i = 0; i < count; ++i, out += kPanelRows) {
        for (int j = 0; j < kVectors; ++j) VStore(block.Load<0>(i, 0, j), out + j * kLanes);
      }
    }
  }
}

// R reads the tiles. Affine blocks are widened once for all of them: kWiden, R reads fp32.
template <class R, bool kWiden = false>
void ManyRows(const GemmJob& g, size_t m0, size_t m1, size_t p0, size_t p1, int max_rows) {
  const PackedWeights& w = *g.w;
  Scratch& scratch = ThreadScratch();
  const size_t k_all = w.k();
  // Long k blocks win up to 2048 (C is loaded and stored less often); equal ones, a multiple of 32.
  constexpr size_t kLongestBlock = 2048;
  const size_t passes = (k_all + kLongestBlock - 1) / kLongestBlock;
  constexpr int kStep = kWiden ? static_cast<int>(kAffineBlock) : R::kStep;
  const size_t kc = KBlock<kStep>(g, ((k_all + passes - 1) / passes + 31) / 32 * 32);
  const size_t mc = g.tuning.row_block != 0 ? g.tuning.row_block : 192;
  for (size_t mb = m0; mb < m1; mb += mc) {
    const size_t rows = std::min(mc, m1 - mb);
    const RowTiles tiles{rows, (rows + max_rows - 1) / max_rows};
    // Panels side by side while they stay in L2: as many as the larger of the tiles takes.
    const int tile_rows_max = static_cast<int>((rows + tiles.tiles - 1) / tiles.tiles);
    const size_t group = static_cast<size_t>(TilePanels(tile_rows_max, R::kMaxAcc));
    for (size_t k = 0; k < k_all; k += kc) {
      const size_t ke = std::min(k_all, k + kc), kn = ke - k;
      float* pa = scratch.a.Get(rows * kn + 64);
      if (kn != k_all || scratch.call != g.call || scratch.row != mb || scratch.rows != rows) {
        PackTiles(g, mb, tiles, k, kn, pa);
        scratch.call = kn == k_all ? g.call : nullptr;
        scratch.row = mb;
        scratch.rows = rows;
      }
      for (size_t p = p0; p < p1; p += group) {
        const size_t np = std::min(group, p1 - p);
        float* wide = nullptr;
        if constexpr (kWiden) {
          wide = scratch.widened.Get(group * kn * kPanelRows);
          WidenPanels(w, p, np, k, kn, wide);
        }
        const auto reader = [&](size_t q) {
          if constexpr (kWiden)
            return R{wide + q * kn * kPanelRows, kn * kPanelRows, kPanelRows};
          else
            return Reader<R>::At(w, p + q, k);
        };
        const bool fetch_ahead = kn == k_all && p + np < p1;
        for (size_t t = 0; t < tiles.tiles; ++t) {
          const Ahead ahead = fetch_ahead ? NextPanels<R>(w, p, np, tiles.tiles, t) : Ahead{};
          const size_t r0 = tiles.Begin(t), tile_rows = tiles.Begin(t + 1) - r0;
          RunPanels<R>(static_cast<int>(tile_rows), np, pa + r0 * kn, 1, tile_rows, reader,
                       g.c + (mb + r0) * g.ldc + p * 16, g.ldc, 0, kn, k == 0, ahead);
        }
      }
    }
  }
}

template <class R>
void GemmPartOf(const GemmJob& g, size_t m0, size_t m1, size_t p0, size_t p1) {
  const int want = g.tuning.max_rows > 0 ? std::min(g.tuning.max_rows, kMaxTileRows) : kMaxTileRows;
  const int max_rows = std::min(want, R::kMaxRows);
  if (p1 == g.w->panels() && g.w->n() % 16 != 0) {
    LastPanel<R>(g, m0, m1, max_rows);
    if (--p1 == p0) return;
  }
  if (m1 - m0 <= static_cast<size_t>(max_rows)) return FewRows<R>(g, m0, m1 - m0, p0, p1);
  if constexpr (std::is_same_v<R, ReadAffine>)
    return ManyRows<ReadF32, true>(g, m0, m1, p0, p1, std::min(want, ReadF32::kMaxRows));
  else
    ManyRows<R>(g, m0, m1, p0, p1, max_rows);
}

// Rows m0 .. m1 - 1, panels p0 .. p1 - 1.
void GemmPart(const GemmJob& g, size_t m0, size_t m1, size_t p0, size_t p1) {
  switch (g.w->form()) {
    case WeightForm::kAffine:
      return GemmPartOf<ReadAffine>(g, m0, m1, p0, p1);
    case WeightForm::kF32:
      return GemmPartOf<ReadF32>(g, m0, m1, p0, p1);
    case WeightForm::kBF16:
      return GemmPartOf<ReadBF16>(g, m0, m1, p0, p1);
    case WeightForm::kF16:
      return GemmPartOf<ReadF16>(g, m0, m1, p0, p1);
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
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
  const GemmJob job{a, lda, &w, c, ldc, tuning, std::make_shared<const char>()};
  const auto part = HWY_DYNAMIC_DISPATCH(GemmPart);
  const size_t threads = static_cast<size_t>(parallel.Threads());
  const size_t panels = w.panels();
  if (threads == 1) return part(job, 0, m, 0, panels);
  // Jobs are handed out as threads come free; a few per thread so that a slow core does not hold up the rest, and as
  // many for each, so that equally fast ones end together.
  const bool split_rows = tuning.split_rows >= 0 ? tuning.split_rows != 0 : m >= 96;
  if (split_rows) {
    const size_t wanted = std::clamp<size_t>(m / 48, 1, threads * 4);
    const size_t jobs = wanted > threads ? wanted / threads * threads : wanted;
    parallel.Run(jobs, [&](size_t j, int) { part(job, m * j / jobs, m * (j + 1) / jobs, 0, panels); });
  } else {
    // One row of a small matrix is some microseconds: more jobs would only shorten its streams.
    const size_t rounds = w.n() * w.k() > (4u << 20) ? 8 : m == 1 ? 1 : 2;
    const PanelCut cut(panels, threads, rounds);
    parallel.Run(cut.jobs(), [&](size_t j, int) { part(job, 0, m, cut.Begin(j), cut.Begin(j + 1)); });
  }
}

}  // namespace iha::kernels
#endif
