// philox.h: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// Pure function of (key, counter): 4 words of 32 random bits. Header-only and free of other headers of ours, so that
// kernels may include it; usable in device code. Thread: any. Checked against Random123's known-answer vectors.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define IHA_PHILOX_FN __host__ __device__ inline
#else
#define IHA_PHILOX_FN inline
#endif

namespace iha {

struct PhiloxBlock {
  uint32_t word[4];
};

// Words 0 and 1 of the 128-bit counter are `lo` (low half first), words 2 and 3 are `hi`; key word 0 is the low half.
IHA_PHILOX_FN PhiloxBlock Philox4x32(uint64_t key, uint64_t lo, uint64_t hi = 0) {
  constexpr uint32_t kMul0 = 0xD2511F53u, kMul1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  constexpr int kRounds = 10;
  uint32_t c0 = static_cast<uint32_t>(lo), c1 = static_cast<uint32_t>(lo >> 32);
  uint32_t c2 = static_cast<uint32_t>(hi), c3 = static_cast<uint32_t>(hi >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; round++) {
    const uint64_t p0 = static_cast<uint64_t>(kMul0) * c0, p1 = static_cast<uint64_t>(kMul1) * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return PhiloxBlock{{c0, c1, c2, c3}};
}

// The top 53 bits of (word 1, word 0) as a multiple of 2^-53 in [0, 1). Exact: no rounding.
IHA_PHILOX_FN double PhiloxUniform(const PhiloxBlock& block) {
  const uint64_t bits = static_cast<uint64_t>(block.word[1]) << 32 | block.word[0];
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace iha

#undef IHA_PHILOX_FN
