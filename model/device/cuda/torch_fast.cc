#include "model/device/cuda/torch_fast.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/headeronly/version.h>

#include <string_view>

#include "common/errors.h"
#include "common/numerics_spec.h"
#include "model/device/cuda/torch_memory.h"

namespace iha::model {
namespace {

static_assert(std::string_view(TORCH_VERSION) == kTorchVersion, "numerics ids name the LibTorch that is built against");

class TorchFast final : public DeviceFast {
 public:
  // `memory` outlives it.
  TorchFast(int index, uint32_t processors, TorchMemory& memory)
      : processors_(processors),
        memory_(memory),
        options_(
            at::TensorOptions(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index))).dtype(at::kBFloat16)) {}

  uint32_t processors() const override { return processors_; }

  absl::StatusOr<bool> Matmul(const kernels::MatmulGpuArgs& args) override {
    return memory_.Run("product", [&] {
      const c10::InferenceMode inference;
      const c10::cuda::CUDAStreamGuard stream(memory_.stream());
      const at::Tensor x = View(args.x, {args.m, args.k}, {args.ldx, 1});
      const at::Tensor w = View(args.w, {args.k, args.n}, {1, args.ldw});
      if (args.y != nullptr) {
        at::Tensor y = View(args.y, {args.m, args.n}, {args.ldy, 1});
        at::mm_out(y, x, w);
      } else {
        at::Tensor y = at::from_blob(args.y_float, {args.m, args.n}, {args.ldy, 1}, options_.dtype(at::kFloat));
        at::mm_out(y, x, w, at::kFloat);
      }
      return true;
    });
  }

  absl::StatusOr<bool> CausalAttention(const Prompt& prompt) override {
    return memory_.Run("attention", [&] {
      const c10::InferenceMode inference;
      const c10::cuda::CUDAStreamGuard stream(memory_.stream());
      const auto view = [&](const uint16_t* from, int64_t heads) {
        const int64_t d = prompt.d;
        return View(from, {1, heads, prompt.rows, d}, {prompt.rows * heads * d, d, heads * d, 1});
      };
      const at::Tensor q = view(prompt.q, prompt.heads), k = view(prompt.k, prompt.kv_heads),
                       v = view(prompt.v, prompt.kv_heads);
      const bool groups = prompt.heads != prompt.kv_heads;
      const int64_t choice = at::_fused_sdp_choice(q, k, v, {}, 0.0, /*is_causal=*/true, prompt.scale, groups);
      if (choice != static_cast<int64_t>(at::SDPBackend::cudnn_attention)) return false;
      view(prompt.out, prompt.heads)
          .copy_(at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true, prompt.scale, groups));
      return true;
    });
  }

 private:
  // LibTorch has no read-only tensors: what is const here is only read.
  at::Tensor View(const uint16_t* from, at::IntArrayRef sizes, at::IntArrayRef strides) const {
    return at::from_blob(const_cast<uint16_t*>(from), sizes, strides, options_);
  }

  const uint32_t processors_;
  TorchMemory& memory_;
  const at::TensorOptions options_;
};

}  // namespace

absl::StatusOr<CudaFast> MakeTorchFast(const CudaDevice& device, cudaStream_t stream) {
  int processors = 0;
  IHA_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index), "--numerics fast"));
  CudaFast fast;
  const absl::StatusOr<bool> made = GuardedTorch("--numerics fast", [&] {
    at::Context& context = at::globalContext();
    context.lazyInitDevice(c10::kCUDA);
    context.setBlasPreferredBackend(at::BlasBackend::Cublaslt);
    // Partial sums of a split K stay in fp32.
    context.setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false, /*allow_splitk=*/true);
    context.setSDPPriorityOrder(
        {static_cast<int64_t>(at::SDPBackend::cudnn_attention), static_cast<int64_t>(at::SDPBackend::flash_attention),
         static_cast<int64_t>(at::SDPBackend::efficient_attention), static_cast<int64_t>(at::SDPBackend::math)});
    auto memory = std::make_unique<TorchMemory>(device.index, stream, at::cuda::graph_pool_handle());
    fast.fast = std::make_unique<TorchFast>(device.index, static_cast<uint32_t>(processors), *memory);
    fast.memory = std::move(memory);
    return true;
  });
  if (!made.ok()) return made.status();
  return fast;
}

}  // namespace iha::model
