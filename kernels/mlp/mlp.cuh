// mlp.cuh: the kernel behind mlp_gpu.h.
#pragma once

#include "kernels/epilogue/row_ops.cuh"
#include "kernels/mlp/mlp_gpu.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kThreads = 256;

template <Activation kActivation>
IHA_DEVICE float Activate(float x) {
  if constexpr (kActivation == Activation::kSilu) return x * Sigmoid(x);
  if constexpr (kActivation == Activation::kGeluTanh) {
    const float cubed = x * x * x;
    return x * Sigmoid(1.59576912160573071f * fmaf(0.044715f, cubed, x));  // 2 sqrt(2 / pi)
  }
  if constexpr (kActivation == Activation::kGeluErf) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  return x > 0.0f || x != x ? x : 0.0f;
}

template <Activation kActivation>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) ActivationMulRows(MlpGpuArgs p) {
  const ptx::Global<const uint16_t> gate(p.gate), up(p.up);
  const ptx::Global<uint16_t> out(p.out);
  const uint32_t chunks = p.n / 8;
  const size_t i = size_t{ptx::BlockX()} * kThreads + ptx::ThreadX(), row = i / chunks, column = i % chunks * 8;
  if (row >= p.rows) return;
  float g[8], u[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  Widen(ptx::LoadAs<Eight16>(gate + (row * p.ld_gate + column)), g);
  if (p.up != nullptr) Widen(ptx::LoadAs<Eight16>(up + (row * p.ld_up + column)), u);
  for (int j = 0; j < 8; ++j) g[j] = Activate<kActivation>(g[j]) * u[j];
  ptx::StoreAs(out + (row * p.ld_out + column), Narrow(g));
}

}  // namespace

template <Activation kActivation>
GpuStatus LaunchActivationMul(const MlpGpuArgs& args, GpuStream stream) {
  const uint64_t chunks = uint64_t{args.rows} * (args.n / 8);
  const LaunchShape shape{static_cast<uint32_t>((chunks + kThreads - 1) / kThreads), 1, 1, kThreads, 0};
  return LaunchKernel("activation_mul", ActivationMulRows<kActivation>, shape, stream, args);
}

}  // namespace iha::kernels
