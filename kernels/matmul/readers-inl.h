// readers-inl.h: weights and cached values as the tiles of tile-inl.h take them, 16 at a time and widened to fp32.
// Included once per Highway target.
#if defined(IHA_KERNELS_MATMUL_READERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_MATMUL_READERS_INL_H_
#undef IHA_KERNELS_MATMUL_READERS_INL_H_
#else
#define IHA_KERNELS_MATMUL_READERS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/matmul.h"
#include "kernels/support/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

#if IHA_FUSED
inline constexpr int kTileRows = 6;
#else
inline constexpr int kTileRows = 2;  // one lane at a time: larger tiles only cost compile time
#endif

// 16-bit weights need one more register to widen: with 16 registers a sixth row spills.
inline constexpr int kTileRows16Bit = IHA_WIDE_REGISTER_FILE || kTileRows < 5 ? kTileRows : 5;
// With 512-bit vectors a seventh row takes one register more than there are; the sum that then lives in memory is ready
// again before its turn, and fp16, the dearest to widen, is widened for more rows at once.
inline constexpr int kTileRowsF16 = kLanes == 16 ? 7 : kTileRows16Bit;
inline constexpr int kMaxTileRows = kTileRowsF16 > kTileRows ? kTileRowsF16 : kTileRows;

// Weight readers: Load<half>(k, np, j) gives vector j of panel np at k (at pair k / 2 and half k % 2 when kStep is 2).
// kMaxAcc bounds the accumulators so that nothing spills. kStepBytes: of a panel, in a step.
struct ReadF32 {
  static constexpr size_t kStepBytes = 64;
  static constexpr int kStep = 1, kMaxRows = kTileRows, kMaxAcc = IHA_WIDE_REGISTER_FILE ? 24 : 12;
  const float* p;
  size_t panel_stride, k_stride;  // in floats
  template <int kHalf>
  HWY_INLINE V Load(size_t k, int np, int j) const {
    return VLoad(p + np * panel_stride + k * k_stride + j * kLanes);
  }
};
// 16-bit values at any strides (cache blocks, fp16 weights).
struct ReadBF16Plain {
  static constexpr int kStep = 1, kMaxRows = kTileRows16Bit, kMaxAcc = IHA_WIDE_REGISTER_FILE ? 24 : 10;
  const uint16_t* p;
  size_t panel_stride, k_stride;
  template <int kHalf>
  HWY_INLINE V Load(size_t k, int np, int j) const {
    return VLoadBF16(p + np * panel_stride + k * k_stride + j * kLanes);
  }
};
struct ReadF16 {
  static constexpr size_t kStepBytes = 32;
  static constexpr int kStep = 1, kMaxRows = kTileRowsF16;
  static constexpr int kMaxAcc = kLanes == 16 ? 28 : IHA_WIDE_REGISTER_FILE ? 24 : 10;
  const uint16_t* p;
  size_t panel_stride, k_stride;
  template <int kHalf>
  HWY_INLINE V Load(size_t k, int np, int j) const {
    return VLoadF16(p + np * panel_stride + k * k_stride + j * kLanes);
  }
};
// Pairs of bf16 in k. Loaded once for each half: a second L1 hit is cheaper than the registers that keep the word.
struct ReadBF16 {
  static constexpr size_t kStepBytes = 64;
  static constexpr int kStep = 2, kMaxRows = kTileRows16Bit, kMaxAcc = IHA_WIDE_REGISTER_FILE ? 24 : 10;
  const uint32_t* p;
  size_t panel_stride;  // in pairs
  template <int kHalf>
  HWY_INLINE V Load(size_t k, int np, int j) const {
    return VLoadBF16Half<kHalf>(p + np * panel_stride + k / 2 * 16 + j * kLanes);
  }
};
// Affine blocks: widened in registers. A tile goes through them block by block, k counts inside one.
struct ReadAffine {
  static constexpr size_t kStepBytes = sizeof(AffinePanelBlock);
  static constexpr int kStep = 16, kMaxRows = kTileRows16Bit, kMaxAcc = IHA_WIDE_REGISTER_FILE ? 16 : 8;
  const AffinePanelBlock* p;
  size_t panel_stride;  // in blocks
  HWY_INLINE ReadAffine Block(size_t b) const { return {p + b, panel_stride}; }
  template <int kHalf>
  HWY_INLINE V Load(size_t k, int np, int j) const {
    const AffinePanelBlock& block = p[np * panel_stride];
    return VFma(VLoad(block.scale + j * kLanes), VLoadI8(block.q[k] + j * kLanes), VLoad(block.offset + j * kLanes));
  }
};

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
