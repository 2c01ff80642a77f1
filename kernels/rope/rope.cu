#include "kernels/rope/rope_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kThreads = 128;

IHA_DEVICE void LoadFour(ptx::Global<const float> from, float* to) {
  const auto four = ptx::LoadAs<ptx::Pack<float, 4>>(from);
  for (int i = 0; i < 4; ++i) to[i] = four.v[i];
}

// A block a token; a thread takes 8 pairs (half) or 4 (interleaved) of a head at a time.
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) RopeRows(RopeGpuArgs p) {
  const uint32_t half = p.rotary_dim / 2, token = ptx::BlockX();
  const bool halves = p.pairing == RopePairing::kHalf;
  const uint32_t pairs = halves ? 8 : 4, steps = half / pairs;
  const size_t row = size_t{ptx::Load(ptx::Global<const uint32_t>(p.positions) + token)} * half;
  const ptx::Global<const float> cosines(p.cos), sines(p.sin);
  const ptx::Global<uint16_t> x(p.x);
  for (uint32_t i = ptx::ThreadX(); i < p.heads * steps; i += kThreads) {
    const uint32_t first = i % steps * pairs;
    const size_t at = size_t{token} * p.token_stride + size_t{i / steps} * p.head_stride + (halves ? first : 2 * first);
    float c[8], s[8], u[8];
    LoadFour(cosines + (row + first), c);
    LoadFour(sines + (row + first), s);
    Widen(ptx::LoadAs<Eight16>(x + at), u);
    if (halves) {
      float v[8];
      LoadFour(cosines + (row + first + 4), c + 4);
      LoadFour(sines + (row + first + 4), s + 4);
      Widen(ptx::LoadAs<Eight16>(x + (at + half)), v);
      for (int j = 0; j < 8; ++j) Rotate(u[j], v[j], c[j], s[j]);
      ptx::StoreAs(x + (at + half), Narrow(v));
    } else {
      for (int j = 0; j < 4; ++j) Rotate(u[2 * j], u[2 * j + 1], c[j], s[j]);
    }
    ptx::StoreAs(x + at, Narrow(u));
  }
}

}  // namespace

GpuStatus RopeGpu(const RopeGpuArgs& args, GpuStream stream) {
  const uint32_t unit = args.pairing == RopePairing::kHalf ? 16 : 8;
  if (args.rotary_dim == 0 || args.rotary_dim % unit != 0 || args.token_stride % 8 != 0 || args.head_stride % 8 != 0)
    return 1;
  if (args.tokens == 0 || args.heads == 0) return 0;
  return LaunchKernel("rope", RopeRows, {args.tokens, 1, 1, kThreads, 0}, stream, args);
}

}  // namespace iha::kernels
