// rng.h: random numbers by name instead of by state (DESIGN section 5).
//
// A stream is a 64-bit key (StreamKeyOf, or the prefix of any digest); number `index` of a stream is a pure function of
// (key, index), so no draw depends on what was drawn before, by whom, or in which batch. Sampling takes the index of
// the generated token. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/philox.h"

namespace iha {

// Uniform in [0, 1), 53 bits.
inline double UniformAt(uint64_t key, uint64_t index) { return PhiloxUniform(Philox4x32(key, index)); }

// 64 random bits: (word 1, word 0).
inline uint64_t Bits64At(uint64_t key, uint64_t index) {
  const PhiloxBlock block = Philox4x32(key, index);
  return static_cast<uint64_t>(block.word[1]) << 32 | block.word[0];
}

// A cursor over one stream, for shuffles, bootstraps and test data. Belongs to one thread.
class PhiloxStream {
 public:
  explicit PhiloxStream(uint64_t key) : key_(key) {}

  uint64_t NextBits() { return Bits64At(key_, index_++); }
  double NextUniform() { return UniformAt(key_, index_++); }
  // Uniform in [0, bound), bound > 0, without bias: draws whose value falls into the incomplete last block are redrawn.
  uint64_t NextBelow(uint64_t bound) {
    const uint64_t reject_below = (0 - bound) % bound;  // 2^64 mod bound
    uint64_t bits = NextBits();
    while (bits < reject_below) bits = NextBits();
    return bits % bound;
  }
  // Fisher-Yates from the back: element i is swapped with a uniform one of 0..i.
  template <class Vector>
  void Shuffle(Vector& values) {
    for (size_t i = values.size(); i > 1; i--) std::swap(values[i - 1], values[NextBelow(i)]);
  }
  uint64_t index() const { return index_; }

 private:
  uint64_t key_;
  uint64_t index_ = 0;
};

// 0..n-1 in the random order of a seed: its first t are a uniform sample without replacement.
inline std::vector<int64_t> SeededOrder(uint64_t seed, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  PhiloxStream(seed).Shuffle(order);
  return order;
}

}  // namespace iha
