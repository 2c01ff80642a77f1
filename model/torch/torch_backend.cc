// The torch backend: a checkpoint as plain LibTorch operations behind the Backend contract, and the module's entry.
//
// The cross-check of every kernel and the baseline of benches. Results depend on LibTorch, its threads and the batch:
// tables call them "sampled". Torch's exceptions end in this file.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <cstring>
#include <string_view>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/backend_module.h"
#include "model/step_check.h"
#include "model/torch/torch_attention.h"
#include "model/torch/torch_device.h"

namespace iha::model::torch {
namespace {

using checkpoint::Activation;
using checkpoint::MlpKind;
using checkpoint::ModelConfig;

static_assert(std::string_view(TORCH_VERSION) == kTorchVersion, "numerics ids name the LibTorch that is built against");

// Runs `work`; what it throws becomes a Status.
template <class Work>
absl::Status Guarded(std::string_view what, const Work& work) {
  const c10::InferenceMode inference;
  try {
    work();
    return absl::OkStatus();
  } catch (const c10::OutOfMemoryError& error) {
    return ResourceExhausted("{}: {}", what, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const std::string line = message.substr(0, message.find('\n'));
    // The CPU allocator has no exception class of its own.
    if (message.find("not enough memory") != std::string::npos) return ResourceExhausted("{}: {}", what, line);
    return Internal("{}: LibTorch: {}", what, line);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("{}: out of memory", what);
  } catch (const std::exception& error) {
    return Internal("{}: {}", what, error.what());
  }
}

at::Tensor Activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kGeluErf:
      return at::gelu(x, "none");
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kRelu:
      return at::relu(x);
  }
  return x;
}

struct Mlp {
  Activation activation = Activation::kSilu;
  bool gated = true;
  LinearLayer gate, up, down;

  at::Tensor operator()(const at::Tensor& x) const {
    return down(gated ? Activate(activation, gate(x)) * up(x) : Activate(activation, up(x)));
  }
};

struct Block {
  Attention attention;
  LayerCache cache;
  Mlp mlp;
  Norm before_attention, before_mlp;
  Norm after_attention, after_mlp;  // sandwich norms only
};

Mlp ReadMlp(const Weights& weights, const std::string& at) {
  const ModelConfig& config = weights.config();
  Mlp mlp{.activation = config.activation, .gated = config.mlp == MlpKind::kGated, .gate = {}, .up = {}, .down = {}};
  if (mlp.gated) mlp.gate = LinearLayer::Read(weights, at + "gate_proj", config.mlp_bias);
  mlp.up = LinearLayer::Read(weights, at + "up_proj", config.mlp_bias);
  mlp.down = LinearLayer::Read(weights, at + "down_proj", config.mlp_bias);
  return mlp;
}

Block ReadBlock(const Weights& weights, int64_t layer) {
  const std::string at = fmt::format("model.layers.{}.", layer);
  const Attention attention(weights, layer);
  Block block{.attention = attention,
              .cache = LayerCache(attention.k_width(), attention.v_width()),
              .mlp = ReadMlp(weights, at + "mlp."),
              .before_attention = Norm::Read(weights, at + "input_layernorm"),
              .before_mlp = {},
              .after_attention = {},
              .after_mlp = {}};
  const Norm post = Norm::Read(weights, at + "post_attention_layernorm");
  if (!weights.config().sandwich_norms) {
    block.before_mlp = post;
    return block;
  }
  block.after_attention = post;
  block.before_mlp = Norm::Read(weights, at + "pre_feedforward_layernorm");
  block.after_mlp = Norm::Read(weights, at + "post_feedforward_layernorm");
  return block;
}

class TorchBackend final : public Backend {
 public:
  TorchBackend(const BackendRequest& request, at::Device device)
      : config_(request.checkpoint->config()),
        device_(device),
        dtype_(request.numerics.activation_dtype == "bf16" ? at::kBFloat16 : at::kFloat),
        cache_dtype_(request.numerics.kv_dtype == "bf16" ? at::kBFloat16 : at::kFloat),
        threads_(request.threads) {}

  absl::Status Load(const BackendRequest& request) {
    return Guarded(request.checkpoint->directory(), [&] { LoadWeights(request); });
  }

  const ModelInfo& info() const override { return info_; }
  absl::Status ReserveCache(int32_t blocks) override {
    IHA_RETURN_IF_ERROR(CheckReservation(blocks_, blocks));
    IHA_RETURN_IF_ERROR(Guarded("KV cache", [&] {
      const auto options = at::TensorOptions(cache_dtype_).device(device_);
      for (Block& block : layers_) block.cache.Reserve(blocks, options);
    }));
    blocks_ = blocks;
    return absl::OkStatus();
  }
  absl::Status CopyBlock(int32_t from, int32_t to) override {
    if (from < 0 || to < 0 || from >= blocks_ || to >= blocks_) {
      return InvalidArgument("CopyBlock({}, {}): expected block ids below {}", from, to, blocks_);
    }
    return Guarded("CopyBlock", [&] {
      for (Block& block : layers_) block.cache.CopyBlock(from, to);
    });
  }
  absl::Status Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) override {
    IHA_RETURN_IF_ERROR(CheckStep(segments, logits.size(), info_, blocks_));
    return Guarded("forward", [&] { Run(segments, logits, trace); });
  }

 private:
  void LoadWeights(const BackendRequest& request);
  void Run(std::span<const Segment> segments, std::span<float> logits, Trace* trace);
  void RunBlock(Block& block, Step& step, at::Tensor& x, Trace* trace) const;

  const ModelConfig config_;
  const at::Device device_;
  const at::ScalarType dtype_, cache_dtype_;
  const int threads_;
  ModelInfo info_;
  int32_t blocks_ = 0;
  at::Tensor embedding_, head_;
  std::vector<Block> layers_;
  Norm final_norm_;
};

void TorchBackend::LoadWeights(const BackendRequest& request) {
  at::set_num_threads(threads_);
  const checkpoint::Checkpoint& checkpoint = *request.checkpoint;
  const Weights weights(checkpoint, device_, dtype_);
  embedding_ = weights.Get("model.embed_tokens.weight");
  head_ = config_.tied_embeddings ? embedding_ : weights.Get("lm_head.weight");
  int64_t width = 0;
  for (int64_t layer = 0; layer < config_.num_layers(); layer++) {
    layers_.push_back(ReadBlock(weights, layer));
    width += layers_.back().cache.width();
  }
  final_norm_ = Norm::Read(weights, "model.norm");
  info_ = {.family = NameOf(config_.family),
           .vocab_size = static_cast<int32_t>(config_.vocab_size),
           .context_tokens = config_.context_tokens,
           .kv_block_bytes = kKvBlockTokens * width * static_cast<int64_t>(at::elementSize(cache_dtype_)),
           .numerics_id = request.numerics.Id(),
           .weights = checkpoint.WeightsDigest()};
  checkpoint.DropPages();
}

void TorchBackend::RunBlock(Block& block, Step& step, at::Tensor& x, Trace* trace) const {
  at::Tensor update = block.attention.Forward(block.before_attention(x), step, block.cache);
  if (trace != nullptr) {
    const at::Tensor out = update.to(at::kCPU, at::kFloat).contiguous();
    trace->attn_out.emplace_back(out.data_ptr<float>(), out.data_ptr<float>() + out.numel());
  }
  if (config_.sandwich_norms) update = block.after_attention(update);
  x = x + update;
  update = block.mlp(block.before_mlp(x));
  if (config_.sandwich_norms) update = block.after_mlp(update);
  x = x + update;
}

void TorchBackend::Run(std::span<const Segment> segments, std::span<float> logits, Trace* trace) {
  Step step(segments, config_, device_);
  if (step.tokens() == 0) return;
  at::Tensor x = embedding_.index_select(0, step.ids());
  if (config_.embedding_scale != 1.0) x = x * config_.embedding_scale;
  for (Block& block : layers_) RunBlock(block, step, x, trace);
  if (logits.empty()) return;
  const at::Tensor rows = final_norm_(x.index_select(0, step.logit_rows()));
  const at::Tensor out = at::linear(rows, head_).to(at::kCPU, at::kFloat).contiguous();
  std::memcpy(logits.data(), out.data_ptr<float>(), logits.size_bytes());
}

absl::StatusOr<int> Architecture(const std::string& name) {
  IHA_ASSIGN_OR_RETURN(const at::Device device, FindDevice(name));
  return ArchitectureOf(device);
}

absl::StatusOr<std::unique_ptr<Backend>> Open(const BackendRequest& request) {
  const NumericsSpec& n = request.numerics;
  const bool f32 = n.weights_dtype == "stored" && n.activation_dtype == "f32";
  const bool bf16 = n.weights_dtype == "bf16" && n.activation_dtype == "bf16";
  if (!(f32 || bf16) || (n.kv_dtype != "f32" && n.kv_dtype != "bf16")) {
    return InvalidArgument(
        "numerics {}: the torch backend takes weights as stored with activations f32, or both bf16; "
        "KV cache f32 or bf16",
        n.Id());
  }
  IHA_ASSIGN_OR_RETURN(const at::Device device, FindDevice(request.device));
  IHA_ASSIGN_OR_RETURN(const int architecture, ArchitectureOf(device));
  if (const std::string here = TorchBackendName(architecture); n.backend != here) {
    return FailedPrecondition("--device {}: runs {}; numerics {} are of another device", request.device, here, n.Id());
  }
  auto backend = std::make_unique<TorchBackend>(request, device);
  IHA_RETURN_IF_ERROR(backend->Load(request));
  return backend;
}

}  // namespace
}  // namespace iha::model::torch

extern "C" {
// What LoadBackendModule looks for.
extern const iha::model::BackendModule iha_backend_module;
const iha::model::BackendModule iha_backend_module = {.abi = iha::model::kBackendModuleAbi,
                                                      .architecture = iha::model::torch::Architecture,
                                                      .open = iha::model::torch::Open};
}
