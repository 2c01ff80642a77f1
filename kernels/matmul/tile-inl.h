// tile-inl.h: register tiles of rows x panels, the inner loop of matmul and of attention.
//
// One chain per output element: lanes are elements, k runs outside, so tile shape changes no bit. Included once per
// Highway target.
#if defined(IHA_KERNELS_MATMUL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_MATMUL_TILE_INL_H_
#undef IHA_KERNELS_MATMUL_TILE_INL_H_
#else
#define IHA_KERNELS_MATMUL_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/readers-inl.h"
#include "kernels/support/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// Memory to fetch into L2 while a tile computes: `lines` cache lines per step from `p` on. A hint: it may run past the
// end of what exists.
struct Ahead {
  const uint8_t* p = nullptr;
  int lines = 0;
  template <int kPanels>
  HWY_INLINE void Step() {
    for (int i = 0; i < lines; ++i, p += 64) __builtin_prefetch(p, 0, 2);
  }
};

// The same for a tile's panels as streams: where they are read as fast as memory gives them, the hardware's own
// fetching stops at each page and begins anew behind it.
template <class R>
struct StreamsAhead {
  static constexpr size_t kBytes = 2048;  // how far
  const uint8_t* p;
  size_t stride;
  template <int kPanels>
  HWY_INLINE void Step() {
    // Once a cache line.
    const bool new_line = R::kStepBytes % 64 == 0 || reinterpret_cast<uintptr_t>(p) % 64 == 0;
#pragma GCC unroll 4
    for (int i = 0; new_line && i < kPanels; ++i) {
#pragma GCC unroll 8
      for (size_t at = 0; at < R::kStepBytes; at += 64) __builtin_prefetch(p + i * stride + kBytes + at, 0, 2);
    }
    p += R::kStepBytes;
  }
};

// One k for kRows x (kPanels * 16). a: row m at a[m * am].
template <int kRows, int kPanels, int kHalf, class R>
HWY_INLINE void TileStep(const float* HWY_RESTRICT a, size_t am, const R& r, size_t k,
                         V (&acc)[kRows][kPanels * kVectors]) {
  constexpr int kCols = kPanels * kVectors;
  // Whatever is fewer stays in registers: the broadcasts of the rows or the weights of this k.
  if constexpr (kRows <= 3) {
    V av[kRows];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) av[m] = VSet(a[m * am]);
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      const V b = r.template Load<kHalf>(k, j / kVectors, j % kVectors);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) acc[m][j] = VFma(av[m], b, acc[m][j]);
    }
  } else {
    V b[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) b[j] = r.template Load<kHalf>(k, j / kVectors, j % kVectors);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const V av = VSet(a[m * am]);
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) acc[m][j] = VFma(av, b[j], acc[m][j]);
    }
  }
}

// kRows x (kPanels * 16) outputs over k0 .. k1. a: element (m, k) at a[m * am + k * ak]; first: start from +0 instead
// of from c. k0 is a multiple of kStep.
template <int kRows, int kPanels, class R, class A>
HWY_INLINE void Tile(const float* HWY_RESTRICT a, size_t am, size_t ak, const R& r, float* HWY_RESTRICT c, size_t ldc,
                     size_t k0, size_t k1, bool first, A& ahead) {
  constexpr int kCols = kPanels * kVectors;
  V acc[kRows][kCols];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) acc[m][j] = first ? VSet(0.0f) : VLoad(c + m * ldc + j * kLanes);
  }
  size_t k = k0;
  if constexpr (R::kStep == 1) {
    for (; k < k1; ++k) {
      ahead.template Step<kPanels>();
      TileStep<kRows, kPanels, 0>(a + k * ak, am, r, k, acc);
    }
  } else if constexpr (R::kStep == 16) {
    for (; k < k1; k += 16) {
      ahead.template Step<kPanels>();
      const R block = r.Block(k / 16);
      const size_t count = k1 - k < 16 ? k1 - k : 16;
      for (size_t i = 0; i < count; ++i) TileStep<kRows, kPanels, 0>(a + (k + i) * ak, am, block, i, acc);
    }
  } else {
    for (; k + 2 <= k1; k += 2) {
      ahead.template Step<kPanels>();
      TileStep<kRows, kPanels, 0>(a + k * ak, am, r, k, acc);
      // Compiler barrier: the odd half loads the word again instead of holding it in a register.
      if (!IHA_WIDE_REGISTER_FILE) asm volatile("" ::: "memory");
      TileStep<kRows, kPanels, 1>(a + (k + 1) * ak, am, r, k, acc);
      if (!IHA_WIDE_REGISTER_FILE) asm volatile("" ::: "memory");
    }
    if (k < k1) TileStep<kRows, kPanels, 0>(a + k * ak, am, r, k, acc);  // odd K: the padding half takes no part
  }
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) VStore(acc[m][j], c + m * ldc + j * kLanes);
  }
}

// Panels side by side for a row tile: enough independent chains to hide the fma latency, within max_acc, and no more
// than four streams of weights for the hardware to fetch.
inline constexpr int kMaxTilePanels = 4;
constexpr int TilePanels(int rows, int max_acc) {
  const int panels = max_acc / (rows * kVectors);
  return panels < 1 ? 1 : panels > kMaxTilePanels ? kMaxTilePanels : panels;
}

// A run of np panels for kRows rows, using the widest tile that the registers allow. reader(p) starts at panel p. The
// fetch ahead goes on from tile to tile.
template <int kRows, class R, class ReaderAt, class A>
HWY_INLINE void RunRows(size_t np, const float* a, size_t am, size_t ak, const ReaderAt& reader, float* c, size_t ldc,
                        size_t k0, size_t k1, bool first, A ahead) {
  constexpr int kPanels = TilePanels(kRows, R::kMaxAcc);
  size_t p = 0;
  for (; p + kPanels <= np; p += kPanels) {
    Tile<kRows, kPanels>(a, am, ak, reader(p), c + p * 16, ldc, k0, k1, first, ahead);
  }
  if constexpr (kPanels > 2) {
    for (; p + 2 <= np; p += 2) Tile<kRows, 2>(a, am, ak, reader(p), c + p * 16, ldc, k0, k1, first, ahead);
  }
  if constexpr (kPanels > 1) {
    for (; p < np; ++p) Tile<kRows, 1>(a, am, ak, reader(p), c + p * 16, ldc, k0, k1, first, ahead);
  }
}

template <class R, class ReaderAt, class A = Ahead>
HWY_NOINLINE void RunPanels(int rows, size_t np, const float* a, size_t am, size_t ak, const ReaderAt& reader, float* c,
                            size_t ldc, size_t k0, size_t k1, bool first, A ahead = {}) {
  switch (rows) {
    case 1:
      return RunRows<1, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
    case 2:
      return RunRows<2, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
#if IHA_FUSED
    case 3:
      return RunRows<3, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
    case 4:
      return RunRows<4, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
    case 5:
      return RunRows<5, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
    case 6:
      return RunRows<6, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
#endif
    case 7:
      if constexpr (R::kMaxRows >= 7) return RunRows<7, R>(np, a, am, ak, reader, c, ldc, k0, k1, first, ahead);
      [[fallthrough]];
    default:
      HWY_ABORT("RunPanels: %d rows in a tile", rows);
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
