#include "kernels/elementwise/elementwise.h"

#include "kernels/embedding/embedding.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

TEST(Elementwise, AddAndScaleRows) {
  ThreadPool one(1), three(3);
  for (ThreadPool* pool : {&one, &three}) {
    const Rows shape{50, 700, 703};
    const std::vector<float> x0 = RandomFloats(50 * 703, 1), y = RandomFloats(50 * 701, 2);
    for (const size_t ldy : {size_t{701}, size_t{0}}) {  // rows, then one bias for all
      std::vector<float> x = x0, want = x0;
      for (size_t r = 0; r < 50; ++r) {
        for (size_t i = 0; i < 700; ++i) want[r * 703 + i] = (want[r * 703 + i] + y[r * ldy + i]) * 0.3f;
      }
      AddInPlace(shape, x.data(), y.data(), ldy, *pool);
      ScaleInPlace(shape, x.data(), 0.3f, *pool);
      EXPECT_EQ(FirstDifference(x, want), -1);  // padding columns included: left alone
    }
  }
}

TEST(Embedding, GathersAndWidensExactly) {
  const size_t n = 7;
  std::vector<uint16_t> table(5 * n);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint16_t>(0x3C00 + 37 * i);
  const std::vector<int32_t> ids = {4, 0, 0, 2};
  for (const StorageType type : {StorageType::kBF16, StorageType::kF16}) {
    std::vector<float> out(4 * 9, -1.0f);
    // One byte off: tables in mapped files have any alignment.
    std::vector<char> shifted(table.size() * 2 + 1);
    std::memcpy(shifted.data() + 1, table.data(), table.size() * 2);
    Embed(type, shifted.data() + 1, n, ids, 3.0f, out.data(), 9);
    for (size_t t = 0; t < 4; ++t) {
      for (size_t i = 0; i < 9; ++i) {
        const uint16_t bits = i < n ? table[ids[t] * n + i] : uint16_t{0};
        const float want = i >= n ? -1.0f : (type == StorageType::kBF16 ? WidenBF16(bits) : WidenF16(bits)) * 3.0f;
        EXPECT_EQ(std::bit_cast<uint32_t>(out[t * 9 + i]), std::bit_cast<uint32_t>(want));
      }
    }
  }
  const std::vector<float> wide = RandomFloats(5 * n, 1);
  std::vector<float> out(n);
  Embed(StorageType::kF32, wide.data(), n, std::vector<int32_t>{3}, 1.0f, out.data(), n);
  EXPECT_EQ(FirstDifference(out.data(), &wide[3 * n], n), -1);
}

}  // namespace
}  // namespace iha::kernels
