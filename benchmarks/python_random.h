// python_random.h: the random numbers of CPython's random.Random(seed) and of NumPy's legacy np.random.seed(seed), draw
// by draw, for prompts and rows that must equal those of Python programs.
//
// CPython: MT19937 seeded by init_by_array with the seed's 32-bit digits (low first), randbelow by rejection, sample()
// by the set path for large pools and the pool-swap path for small ones; the same from 3.8 to 3.13 (Modules/
// _randommodule.c, Lib/random.py). NumPy: the same generator seeded by init_genrand, integers by masked rejection
// (numpy/random/mtrand.pyx). An object belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace iha::benchmarks {

class Mt19937 {
 public:
  // init_genrand
  explicit Mt19937(uint32_t seed);
  // init_by_array; `key` is not empty.
  explicit Mt19937(std::span<const uint32_t> key);
  uint32_t Next();

 private:
  static constexpr int kSize = 624;
  void Refill();

  std::array<uint32_t, kSize> state_{};
  int index_ = kSize;
};

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  uint32_t NextUint32() { return generator_.Next(); }
  // 1 <= bits <= 32.
  uint32_t GetRandBits(int bits) { return NextUint32() >> (32 - bits); }
  // Uniform in [0, bound), 1 <= bound < 2^32.
  uint32_t RandBelow(uint32_t bound);
  // randint(low, high), both ends included. low <= high, high - low < 2^32 - 1.
  int64_t RandInt(int64_t low, int64_t high) { return low + RandBelow(static_cast<uint32_t>(high - low + 1)); }
  // random(): in [0, 1), 53 bits.
  double Unit();
  // "".join(choices(alphabet, k=count)).
  std::string Choices(std::string_view alphabet, int count);
  // str(uuid.UUID(int=getrandbits(128), version=4))
  std::string Uuid4();
  // sample(range(pool), count), in drawn order. 0 <= count <= pool < 2^32.
  std::vector<int32_t> Sample(int32_t pool, int32_t count);
  template <class T>
  void Shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i-- > 1;) {
      const uint32_t j = RandBelow(static_cast<uint32_t>(i + 1));
      if (j != i) std::swap(list[i], list[j]);
    }
  }

 private:
  Mt19937 generator_;
};

// np.random.seed(seed) and the draws after it.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : generator_(seed) {}
  // randint(low, high), `high` excluded. low < high, high - low <= 2^32.
  int64_t RandInt(int64_t low, int64_t high);

 private:
  Mt19937 generator_;
};

}  // namespace iha::benchmarks
