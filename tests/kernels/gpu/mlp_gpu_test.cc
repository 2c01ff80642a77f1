#include "kernels/mlp/mlp_gpu.h"

#include <limits>

#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

struct Case {
  Activation activation;
  bool with_up;
  uint32_t rows, n, padding;
};
struct Inputs {
  Case c;
  Rounded gate, up;
};
Inputs Make(const Case& c) {
  const size_t n = size_t{c.rows} * (c.n + c.padding);
  Inputs in{c, RandomBF16(n, 1, 12), RandomBF16(n, 2, 3)};
  const float special[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -80.0f,
                           0.0f};
  for (size_t i = 0; i < 4; ++i) in.gate.bits[i + 4] = RoundToBF16(in.gate.values[i + 4] = special[i]);
  return in;
}
std::vector<double> Reference(const Inputs& in) {
  const Case& c = in.c;
  std::vector<double> want(size_t{c.rows} * c.n);
  ActivationMulRef(c.activation, {c.rows, c.n, c.n + c.padding, c.n + c.padding, c.n}, in.gate.values.data(),
                   c.with_up ? in.up.values.data() : nullptr, want.data());
  return want;
}
void ExpectWithinBound(simt::Device& device, const Inputs& in, const std::vector<double>& want) {
  const Case& c = in.c;
  simt::Buffer<uint16_t> dg(device, in.gate.bits, "gate"), du(device, in.up.bits, "up"),
      out(device, want.size(), "out");
  ASSERT_EQ(ActivationMulGpu({.gate = dg.data(),
                              .up = c.with_up ? du.data() : nullptr,
                              .out = out.data(),
                              .rows = c.rows,
                              .n = c.n,
                              .ld_gate = c.n + c.padding,
                              .ld_up = c.n + c.padding,
                              .ld_out = c.n,
                              .activation = c.activation},
                             &device),
            0)
      << device.report().message;
  // |z| <= 32 where the sigmoid matters: rounding of z log2 e moves 2^x by 32 * 1.5 * 2^-24 of it, below 2^-18;
  // with the other roundings 2^-17. 1 + erf cancels for negative x: 2^-23 of |x up| <= 36 in all.
  ExpectClose(WidenAll(out.ToHost()), want, kBF16 + 0x1p-17, [](size_t) { return 36 * 0x1p-23; });
  EXPECT_EQ(device.report().counters.global_read_bytes, want.size() * (c.with_up ? 4 : 2));
  EXPECT_EQ(device.report().counters.global_written_bytes, want.size() * 2);
}

constexpr std::array<Activation, 4> kActivations{Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf,
                                                 Activation::kRelu};

TEST(MlpGpu, WithinTheBoundOfTheReference) {
  for (const Activation activation : kActivations) {
    for (const bool with_up : {true, false}) {
      const Inputs in = Make({activation, with_up, 7, 200, 8});
      const std::vector<double> want = Reference(in);
      ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(device, in, want); });
    }
  }
}

// Every pair of: activation, gated or not, rows, columns, elements between rows, what is not finite.
TEST(MlpGpu, GridOfShapes) {
  const std::array<uint32_t, 4> rows{1, 3, 20, 33};
  const std::array<uint32_t, 5> columns{8, 72, 256, 1032, 2560};
  OverGrid(grid_share::kNone, {4, 2, 4, 5, 2, 4}, [&](const std::vector<size_t>& row, uint32_t number) {
    Inputs in = Make({kActivations[row[0]], row[1] == 0, rows[row[2]], columns[row[3]], row[4] == 0 ? 0u : 8u});
    // Beside a gate that no activation takes to 0: infinity times that is a NaN.
    const size_t at = (number * 7919 % in.c.rows * (in.c.n + in.c.padding)) + number % 4;
    in.gate.bits[at] = RoundToBF16(in.gate.values[at] = 1.5f);
    PutNotFinite(in.up, at, row[5]);
    return [in, want = Reference(in)](simt::Device& device) {
      SCOPED_TRACE(std::to_string(in.c.rows) + " x " + std::to_string(in.c.n));
      ExpectWithinBound(device, in, want);
    };
  });
}

TEST(MlpGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(ActivationMulGpu({.rows = 1, .n = 12, .ld_gate = 16, .ld_up = 16, .ld_out = 16}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
