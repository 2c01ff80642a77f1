// python_random.h: CPython's random.Random(seed) and its sample(), as far as few-shot draws need them.
//
// MT19937 seeded by init_by_array with the seed's 32-bit digits (low first), getrandbits(k) = next output >> (32 - k),
// randbelow by rejection, sample() by the set path for large pools and the pool-swap path for small ones.
// Source: CPython 3.11, Modules/_randommodule.c and Lib/random.py. An object belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace iha::benchmarks {

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  uint32_t NextUint32();
  // 1 <= bits <= 32.
  uint32_t GetRandBits(int bits) { return NextUint32() >> (32 - bits); }
  // Uniform in [0, bound), 1 <= bound < 2^32.
  uint32_t RandBelow(uint32_t bound);
  // sample(range(pool), count), in drawn order. 0 <= count <= pool < 2^32.
  std::vector<int32_t> Sample(int32_t pool, int32_t count);

 private:
  static constexpr int kSize = 624;
  void InitGenRand(uint32_t seed);
  void Refill();

  std::array<uint32_t, kSize> state_{};
  int index_ = kSize;
};

}  // namespace iha::benchmarks
