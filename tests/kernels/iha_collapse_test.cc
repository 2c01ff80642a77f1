#include "kernels/iha_collapse/iha_collapse.h"

#include <array>
#include <cmath>
#include <limits>

#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

// The header's rule for one token, written plainly.
std::vector<float> Rule(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v) {
  const size_t heads = shape.heads, pseudo = shape.pseudo, d = shape.d, rows = heads * pseudo;
  std::vector<float> z(a, a + rows * d), out(heads * d, 0.0f);
  for (size_t r = 0; v != nullptr && r < rows; ++r) {
    const std::vector<float> row = XsaRule(&z[r * d], v + r * d, d);
    std::copy(row.begin(), row.end(), &z[r * d]);
  }
  for (size_t h = 0; h < heads; ++h) {
    const size_t first = shape.global ? 0 : h * pseudo, count = shape.global ? rows : pseudo;
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < d; ++i) {
        out[h * d + i] = std::fma(collapse[h * count + k], z[(first + k) * d + i], out[h * d + i]);
      }
    }
  }
  return out;
}

TEST(IhaCollapse, FollowsTheRuleAndTheEquations) {
  ThreadPool one(1), three(3);
  for (const bool global : {false, true}) {
    for (const auto& [heads, pseudo, d] :
         {std::array<size_t, 3>{4, 2, 8}, {3, 3, 20}, {5, 1, 64}, {20, 20, 16}, {7, 4, 128}}) {
      const IhaCollapseShape shape{11, heads, pseudo, d, global};
      const size_t rows = heads * pseudo;
      const std::vector<float> r = RandomFloats(heads * (global ? rows : pseudo), 1),
                               a = RandomFloats(11 * rows * d, 2), v = RandomFloats(11 * rows * d, 3);
      for (const float* values : {static_cast<const float*>(nullptr), v.data()}) {
        std::vector<float> want;
        for (size_t t = 0; t < 11; ++t) {
          const auto token =
              Rule(shape, r.data(), &a[t * rows * d], values == nullptr ? nullptr : values + t * rows * d);
          want.insert(want.end(), token.begin(), token.end());
        }
        ForEachTarget([&](const SimdTarget&) {
          for (ThreadPool* pool : {&one, &three}) {
            std::vector<float> got(want.size(), std::numeric_limits<float>::quiet_NaN());
            IhaCollapse(shape, r.data(), a.data(), values, got.data(), *pool);
            ASSERT_EQ(FirstDifference(got, want), -1) << "H " << heads << " P " << pseudo << " d " << d;
          }
        });
        // u = 2^-24, |a|, |R| <= 1. XSA: a dot of d terms with |u| <= 1 errs by (d + 6) u sqrt d, times u_i <= 1, and
        // one rounding; |z| <= 2 sqrt d. The chain over n terms: n u of n |z|.
        std::vector<double> exact(want.size());
        IhaCollapseRef(shape, r.data(), a.data(), values, exact.data());
        const double n = static_cast<double>(global ? rows : pseudo), dd = static_cast<double>(d), u = 0x1p-24;
        const double z = values == nullptr ? 1 : 2 * std::sqrt(dd),
                     z_error = values == nullptr ? 0 : (dd + 8) * std::sqrt(dd) * u;
        for (size_t i = 0; i < want.size(); ++i) ASSERT_LE(std::fabs(want[i] - exact[i]), n * z_error + n * n * z * u);
      }
    }
  }
}

TEST(IhaCollapse, XsaLeavesNothingAlongTheValueAndBearsZeros) {
  SerialFor serial;
  const IhaCollapseShape shape{1, 2, 1, 32, false};
  const std::vector<float> r = {1.0f, 1.0f}, a = RandomFloats(64, 1);
  std::vector<float> v = RandomFloats(64, 2), out(64);
  std::fill(v.begin() + 32, v.end(), 0.0f);  // |v| = 0: nothing to exclude
  IhaCollapse(shape, r.data(), a.data(), v.data(), out.data(), serial);
  double along = 0;
  for (size_t i = 0; i < 32; ++i) along += static_cast<double>(out[i]) * v[i];
  EXPECT_LT(std::fabs(along), 40 * 32 * 0x1p-24);  // the bound above times |v|_1
  EXPECT_EQ(FirstDifference(&out[32], &a[32], 32), -1);
}

TEST(IhaCollapse, OneHeadOfWeightOneChangesNoBit) {
  SerialFor serial;
  const std::vector<float> a = RandomFloats(5 * 3 * 12, 1), ones(3, 1.0f);
  std::vector<float> out(a.size());
  IhaCollapse({5, 3, 1, 12, false}, ones.data(), a.data(), nullptr, out.data(), serial);
  EXPECT_EQ(FirstDifference(out, a), -1);
}

}  // namespace
}  // namespace iha::kernels
