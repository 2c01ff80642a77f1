#include "kernels/mlp/mlp_gpu.h"

#include <limits>

#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

TEST(MlpGpu, WithinTheBoundOfTheReference) {
  for (const Activation activation :
       {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf, Activation::kRelu}) {
    for (const bool with_up : {true, false}) {
      const uint32_t rows = 7, n = 200, padding = 8;
      Rounded gate = RandomBF16(size_t{rows} * (n + padding), 1, 12), up = RandomBF16(gate.bits.size(), 2, 3);
      const auto put = [&](size_t i, float v) { gate.bits[i] = RoundToBF16(gate.values[i] = v); };
      put(5, std::numeric_limits<float>::quiet_NaN());
      put(6, std::numeric_limits<float>::infinity());
      put(7, -80.0f);
      put(8, 0.0f);
      std::vector<double> want(size_t{rows} * n);
      ActivationMulRef(activation, {rows, n, n + padding, n + padding, n}, gate.values.data(),
                       with_up ? up.values.data() : nullptr, want.data());
      ForEachSchedule([&](simt::Device& device) {
        simt::Buffer<uint16_t> dg(device, gate.bits, "gate"), du(device, up.bits, "up"),
            out(device, want.size(), "out");
        ASSERT_EQ(ActivationMulGpu({.gate = dg.data(),
                                    .up = with_up ? du.data() : nullptr,
                                    .out = out.data(),
                                    .rows = rows,
                                    .n = n,
                                    .ld_gate = n + padding,
                                    .ld_up = n + padding,
                                    .ld_out = n,
                                    .activation = activation},
                                   &device),
                  0)
            << device.report().message;
        // |z| <= 32 where the sigmoid matters: rounding of z log2 e moves 2^x by 32 * 1.5 * 2^-24 of it, below 2^-18;
        // with the other roundings 2^-17. 1 + erf cancels for negative x: 2^-23 of |x up| <= 36 in all.
        ExpectClose(WidenAll(out.ToHost()), want, kBF16 + 0x1p-17, [](size_t) { return 36 * 0x1p-23; });
        EXPECT_EQ(device.report().counters.global_read_bytes, want.size() * (with_up ? 4 : 2));
        EXPECT_EQ(device.report().counters.global_written_bytes, want.size() * 2);
      });
    }
  }
}

TEST(MlpGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(ActivationMulGpu({.rows = 1, .n = 12, .ld_gate = 16, .ld_up = 16, .ld_out = 16}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
