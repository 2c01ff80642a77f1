// ldmatrix, stmatrix, mma and number formats against the tables of the PTX ISA (9.7.14, matrix fragments), written as
// the tables are: from register and lane to row and column.
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/matrix.h"
#include "kernels/simt/ptx.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

using simt::Buffer;
using simt::Device;

struct Place {
  int row;
  int column;
};
// Element i = 0 .. 7 of a lane's A for .m16n8k16 with .f16 / .bf16.
Place PlaceA16(int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place PlaceB16(int lane, int i) { return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane >> 2}; }
Place PlaceC(int lane, int i) { return {(lane >> 2) + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)}; }
// .m16n8k8 with .tf32.
Place PlaceA8(int lane, int i) { return {(lane >> 2) + (i == 1 || i == 3 ? 8 : 0), lane % 4 + (i >= 2 ? 4 : 0)}; }
Place PlaceB8(int lane, int i) { return {lane % 4 + (i == 1 ? 4 : 0), lane >> 2}; }

enum class Type { kBF16, kF16, kTF32 };

// Runs one mma over matrices given element by element; returns D.
std::vector<float> RunMma(Type type, const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& c) {
  const int k = type == Type::kTF32 ? 8 : 16;
  const auto encode = [type](float x) -> uint32_t {
    return type == Type::kBF16 ? RoundToBF16(x) : type == Type::kF16 ? simt::FloatToHalf(x) : ptx::ToTF32(x);
  };
  std::vector<float> d(16 * 8);
  Device device;
  const auto report = device.Launch({.name = "mma", .block = {32, 1, 1}}, [&] {
    const int lane = static_cast<int>(ptx::Lane());
    uint32_t fa[4] = {}, fb[2] = {};
    float fc[4];
    const auto at = [](const std::vector<float>& m, Place p, int width) {
      return m[static_cast<size_t>(p.row * width + p.column)];
    };
    if (type == Type::kTF32) {
      for (int i = 0; i < 4; ++i) fa[i] = encode(at(a, PlaceA8(lane, i), k));
      for (int i = 0; i < 2; ++i) fb[i] = encode(at(b, PlaceB8(lane, i), 8));
    } else {
      for (int i = 0; i < 8; ++i) fa[i / 2] |= encode(at(a, PlaceA16(lane, i), k)) << (16 * (i % 2));
      for (int i = 0; i < 4; ++i) fb[i / 2] |= encode(at(b, PlaceB16(lane, i), 8)) << (16 * (i % 2));
    }
    for (int i = 0; i < 4; ++i) fc[i] = at(c, PlaceC(lane, i), 8);
    if (type == Type::kBF16) ptx::MmaBF16(fc, fa, fb);
    if (type == Type::kF16) ptx::MmaF16(fc, fa, fb);
    if (type == Type::kTF32) ptx::MmaTF32(fc, fa, fb);
    for (int i = 0; i < 4; ++i) {
      const Place p = PlaceC(lane, i);
      d[static_cast<size_t>(p.row * 8 + p.column)] = fc[i];
    }
  });
  EXPECT_TRUE(report.ok()) << report.message;
  EXPECT_EQ(report.counters.mma, 1u);
  EXPECT_EQ(report.counters.mma_multiply_adds, static_cast<uint64_t>(16 * 8 * k));
  return d;
}

TEST(SimtMatrix, MmaMultipliesExactlyWhatTheTablesSay) {
  for (const Type type : {Type::kBF16, Type::kF16, Type::kTF32}) {
    const size_t k = type == Type::kTF32 ? 8 : 16;
    // Distinct small integers per place: every permutation of fragments gives other sums, and all sums are exact.
    std::vector<float> a = RandomFloats(16 * k, 1, 100), b = RandomFloats(k * 8, 2, 100),
                       c = RandomFloats(16 * 8, 3, 9);
    for (auto* m : {&a, &b, &c}) {
      for (float& x : *m) x = std::floor(x);
    }
    const std::vector<float> d = RunMma(type, a, b, c);
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 8; ++j) {
        double want = c[i * 8 + j];
        for (size_t l = 0; l < k; ++l) want += static_cast<double>(a[i * k + l]) * b[l * 8 + j];
        EXPECT_EQ(d[i * 8 + j], want) << i << " " << j << " type " << static_cast<int>(type);
      }
    }
  }
}

// The order of matrix.h: c first, then one product after another, each sum rounded.
TEST(SimtMatrix, MmaAddsInTheStatedOrder) {
  std::vector<float> a(16 * 16), b(16 * 8), c(16 * 8);
  const auto random = RandomFloats(16 * 16 + 16 * 8 + 16 * 8, 4, 3);
  for (size_t i = 0; i < a.size(); ++i) a[i] = WidenBF16(RoundToBF16(random[i]));
  for (size_t i = 0; i < b.size(); ++i) b[i] = WidenBF16(RoundToBF16(random[256 + i]));
  for (size_t i = 0; i < c.size(); ++i) c[i] = random[384 + i];
  const std::vector<float> d = RunMma(Type::kBF16, a, b, c);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      float want = c[i * 8 + j];
      for (size_t l = 0; l < 16; ++l) want = std::fma(a[i * 16 + l], b[l * 8 + j], want);
      EXPECT_EQ(d[i * 8 + j], want);
    }
  }
}

TEST(SimtMatrix, TF32IgnoresTheLowBits) {
  std::vector<float> a(16 * 8, 0.0f), b(8 * 8, 0.0f), c(16 * 8, 0.0f);
  Device device;
  float got = 0;
  const auto report = device.Launch({.name = "tf32", .block = {32, 1, 1}}, [&] {
    uint32_t fa[4] = {std::bit_cast<uint32_t>(1.0f) + 0x1FFF, 0, 0, 0}, fb[2] = {std::bit_cast<uint32_t>(2.0f), 0};
    float fc[4] = {};
    ptx::MmaTF32(fc, fa, fb);
    if (ptx::Lane() == 0) got = fc[0];
  });
  ASSERT_TRUE(report.ok()) << report.message;
  EXPECT_EQ(got, 8.0f);  // 4 columns of ones times twos
}

// PTX ISA, ldmatrix: thread t receives of each matrix the elements (t / 4, 2 (t % 4)) and (t / 4, 2 (t % 4) + 1); with
// .trans the matrix is loaded column-major, so those of the transpose.
template <int kMatrices, bool kTransposed>
void CheckLoadAndStore() {
  Device device;
  // Rows at scattered, distinct multiples of 16 bytes; element (matrix, row, column) holds its own number.
  const auto row_at = [](uint32_t m, uint32_t r) { return ((m * 8 + r) * 5 % 32) * 16; };
  std::vector<uint32_t> loaded(32 * kMatrices);
  std::vector<uint16_t> stored(8 * 8 * kMatrices);
  const auto report = device.Launch({.name = "ldmatrix", .block = {32, 1, 1}, .shared_bytes = 2 * 32 * 16}, [&] {
    const uint32_t lane = ptx::Lane(), m = lane / 8, r = lane % 8;
    const auto shared = ptx::DynamicShared<uint16_t>();
    for (uint32_t j = 0; j < 8; ++j) {
      ptx::Store(shared + (row_at(m, r) / 2 + j), static_cast<uint16_t>(m * 100 + r * 10 + j));
    }
    ptx::SyncWarp();
    uint32_t registers[kMatrices];
    // Lanes beyond 8 * matrices give addresses that no one may touch.
    const bool used = m < kMatrices;
    ptx::LdMatrix<kMatrices, kTransposed>(registers, shared + (used ? row_at(m, r) / 2 : 1 << 20));
    for (uint32_t i = 0; i < kMatrices; ++i) loaded[i * 32 + lane] = registers[i];
    ptx::SyncWarp();
    ptx::StMatrix<kMatrices, kTransposed>(ptx::DynamicShared<uint16_t>(32 * 16 + (used ? row_at(m, r) : 1 << 20)),
                                          registers);
    ptx::SyncWarp();
    for (uint32_t j = 0; used && j < 8; ++j) {
      stored[(m * 8 + r) * 8 + j] = ptx::Load(ptx::DynamicShared<uint16_t>(32 * 16 + row_at(m, r)) + j);
    }
  });
  ASSERT_TRUE(report.ok()) << report.message;
  for (uint32_t m = 0; m < kMatrices; ++m) {
    for (uint32_t t = 0; t < 32; ++t) {
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t i = t / 4, j = t % 4 * 2 + half;
        const uint32_t want = kTransposed ? m * 100 + j * 10 + i : m * 100 + i * 10 + j;
        EXPECT_EQ(loaded[m * 32 + t] >> (16 * half) & 0xFFFF, want) << "matrix " << m << " thread " << t;
      }
    }
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(stored[m * 64 + i], m * 100 + i / 8 * 10 + i % 8);
  }
}

TEST(SimtMatrix, LdmatrixAndStmatrixFollowTheTables) {
  CheckLoadAndStore<1, false>();
  CheckLoadAndStore<2, false>();
  CheckLoadAndStore<4, false>();
  CheckLoadAndStore<1, true>();
  CheckLoadAndStore<2, true>();
  CheckLoadAndStore<4, true>();
}

// 8 rows in the same banks take 8 cycles instead of one, at a stride of 80 bytes one.
TEST(SimtMatrix, BankConflictsAreCounted) {
  const auto conflicts = [](uint32_t stride) {
    Device device({.check_shared = false});
    const auto report = device.Launch({.name = "banks", .block = {32, 1, 1}, .shared_bytes = 8 * 256}, [&] {
      uint32_t registers[1];
      ptx::LdMatrix<1, false>(registers, ptx::DynamicShared<uint16_t>(ptx::Lane() % 8 * stride));
    });
    EXPECT_TRUE(report.ok()) << report.message;
    return report.counters.matrix_bank_conflicts;
  };
  EXPECT_EQ(conflicts(128), 7u);
  EXPECT_EQ(conflicts(64), 3u);
  EXPECT_EQ(conflicts(16), 0u);
  EXPECT_EQ(conflicts(80), 0u);
  EXPECT_EQ(conflicts(0), 0u);  // one row for all: a broadcast
}

// Nearest half by comparison with both neighbours, ties to the even one.
TEST(SimtMatrix, HalfRoundsToNearestEven) {
  EXPECT_EQ(simt::HalfToFloat(0x3C00), 1.0f);
  EXPECT_EQ(simt::HalfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(simt::HalfToFloat(0x7BFF), 65504.0f);
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = simt::HalfToFloat(static_cast<uint16_t>(bits)),
                high = simt::HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact: one bit more
    ASSERT_EQ(simt::FloatToHalf(low), bits);
    ASSERT_EQ(simt::FloatToHalf(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(simt::FloatToHalf(std::nextafter(middle, low)), bits);
    ASSERT_EQ(simt::FloatToHalf(-std::nextafter(middle, high)), (bits + 1) | 0x8000u);
  }
  EXPECT_EQ(simt::FloatToHalf(65519.996f), 0x7BFF);
  EXPECT_EQ(simt::FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(simt::FloatToHalf(-INFINITY), 0xFC00);
  EXPECT_EQ(simt::FloatToHalf(NAN) & 0x7C00, 0x7C00);
  EXPECT_NE(simt::FloatToHalf(NAN) & 0x03FF, 0);
}

TEST(SimtMatrix, NumberFormats) {
  EXPECT_EQ(ptx::PackBF16(1.0f, -2.0f), 0xC0003F80u);
  EXPECT_EQ(ptx::LowBF16(0xC0003F80u), 1.0f);
  EXPECT_EQ(ptx::HighBF16(0xC0003F80u), -2.0f);
  EXPECT_EQ(ptx::PackF16(1.0f, -2.0f), 0xC0003C00u);
  EXPECT_EQ(ptx::ToTF32(std::bit_cast<float>(0x3F801000u)), 0x3F802000u);  // a tie goes away from zero
  EXPECT_EQ(ptx::ToTF32(std::bit_cast<float>(0xBF801000u)), 0xBF802000u);
  EXPECT_EQ(ptx::ToTF32(std::bit_cast<float>(0x3F800FFFu)), 0x3F800000u);
  EXPECT_EQ(ptx::ToTF32(INFINITY), 0x7F800000u);
}

}  // namespace
}  // namespace iha::kernels
