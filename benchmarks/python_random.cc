#include "benchmarks/python_random.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>

namespace iha::benchmarks {

Mt19937::Mt19937(uint32_t seed) {
  state_[0] = seed;
  for (size_t i = 1; i < kSize; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<uint32_t>(i);
  }
}

Mt19937::Mt19937(std::span<const uint32_t> key) : Mt19937(19650218u) {
  const auto key_size = static_cast<int>(key.size());
  int i = 1, j = 0;
  const auto mixed = [&](int at, uint32_t factor) {
    const uint32_t previous = state_[static_cast<size_t>(at - 1)];
    return state_[static_cast<size_t>(at)] ^ ((previous ^ (previous >> 30)) * factor);
  };
  const auto advance = [&] {
    if (++i >= kSize) {
      state_[0] = state_[kSize - 1];
      i = 1;
    }
  };
  for (int k = std::max(kSize, key_size); k > 0; --k) {
    state_[static_cast<size_t>(i)] = mixed(i, 1664525u) + key[static_cast<size_t>(j)] + static_cast<uint32_t>(j);
    advance();
    j = (j + 1) % key_size;
  }
  for (int k = kSize - 1; k > 0; --k) {
    state_[static_cast<size_t>(i)] = mixed(i, 1566083941u) - static_cast<uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000u;
}

void Mt19937::Refill() {
  constexpr size_t kShift = 397;
  for (size_t i = 0; i < kSize; ++i) {
    const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % kSize] & 0x7fffffffu);
    state_[i] = state_[(i + kShift) % kSize] ^ (y >> 1) ^ ((y & 1u) != 0 ? 0x9908b0dfu : 0u);
  }
  index_ = 0;
}

uint32_t Mt19937::Next() {
  if (index_ >= kSize) Refill();
  uint32_t y = state_[static_cast<size_t>(index_++)];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

namespace {

std::vector<uint32_t> SeedKey(uint64_t seed) {
  std::vector<uint32_t> key = {static_cast<uint32_t>(seed)};
  if (seed >> 32 != 0) key.push_back(static_cast<uint32_t>(seed >> 32));
  return key;
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) : generator_(SeedKey(seed)) {}

double PythonRandom::Unit() {
  const uint32_t a = NextUint32() >> 5, b = NextUint32() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

std::string PythonRandom::Choices(std::string_view alphabet, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += alphabet[static_cast<size_t>(Unit() * static_cast<double>(alphabet.size()))];
  return text;
}

std::string PythonRandom::Uuid4() {
  uint64_t low = NextUint32();
  low |= uint64_t{NextUint32()} << 32;
  uint64_t high = NextUint32();
  high |= uint64_t{NextUint32()} << 32;
  low = (low & ~(uint64_t{3} << 62)) | uint64_t{1} << 63;      // the variant of RFC 4122
  high = (high & ~(uint64_t{0xF} << 12)) | uint64_t{4} << 12;  // version 4
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF, low >> 48,
                     low & 0xFFFFFFFFFFFF);
}

int64_t NumpyRandom::RandInt(int64_t low, int64_t high) {
  const auto range = static_cast<uint32_t>(high - 1 - low);
  if (range == 0) return low;  // draws nothing
  const auto mask = static_cast<uint32_t>((uint64_t{1} << std::bit_width(range)) - 1);
  uint32_t value = generator_.Next() & mask;
  while (value > range) value = generator_.Next() & mask;
  return low + value;
}

uint32_t PythonRandom::RandBelow(uint32_t bound) {
  const int bits = std::bit_width(bound);
  uint32_t r = GetRandBits(bits);
  while (r >= bound) r = GetRandBits(bits);
  return r;
}

std::vector<int32_t> PythonRandom::Sample(int32_t pool, int32_t count) {
  // Lib/random.py: a set of `count` entries costs more than a list of the pool when the pool is this small.
  int64_t set_size = 21;
  if (count > 5) {
    int64_t power = 1;  // 4 ** ceil(log(3 count, 4)); 3 count is never a power of 4
    while (power < int64_t{3} * count) power *= 4;
    set_size += power;
  }
  std::vector<int32_t> result;
  result.reserve(static_cast<size_t>(count));
  if (pool <= set_size) {
    std::vector<int32_t> remaining(static_cast<size_t>(pool));
    std::iota(remaining.begin(), remaining.end(), 0);
    for (int32_t i = 0; i < count; ++i) {
      const uint32_t j = RandBelow(static_cast<uint32_t>(pool - i));
      result.push_back(remaining[j]);
      remaining[j] = remaining[static_cast<size_t>(pool - i - 1)];
    }
    return result;
  }
  std::unordered_set<uint32_t> taken;
  for (int32_t i = 0; i < count; ++i) {
    uint32_t j = RandBelow(static_cast<uint32_t>(pool));
    while (!taken.insert(j).second) j = RandBelow(static_cast<uint32_t>(pool));
    result.push_back(static_cast<int32_t>(j));
  }
  return result;
}

}  // namespace iha::benchmarks
