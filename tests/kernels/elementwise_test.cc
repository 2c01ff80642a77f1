#include "kernels/elementwise/elementwise.h"

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

}  // namespace
}  // namespace iha::kernels
