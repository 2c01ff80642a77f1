#include "model/device/device_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <optional>
#include <string_view>

#include "common/errors.h"
#include "common/status_macros.h"
#include "kernels/elementwise/elementwise_gpu.h"
#include "kernels/mlp/mlp_gpu.h"
#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "kernels/support/small_float.h"
#include "model/activation.h"
#include "model/device/decode_steps.h"
#include "model/device/device_attention.h"
#include "model/device/device_profile.h"
#include "model/device/device_sampling.h"
#include "model/step_check.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::ModelConfig;

constexpr std::string_view kStep = "a step (lower the batch or the prompt's chunks)";

// Runs `work`. Where the host has no memory the call fails and no other: what the step had taken is gone with it.
template <class Work>
absl::Status WithinHostMemory(std::string_view what, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("{}: out of memory of the host", what);
  }
}

struct Block {
  DeviceAttention attention;
  DeviceRows input_norm, before_mlp;
  DeviceRows after_attention, after_mlp;  // sandwich norms only
  DeviceLinear gate, up, down;            // gate: of gated ones
};

class DeviceBackend final : public Backend, private TokenDrawing {
 public:
  DeviceBackend(const ModelConfig& config, std::unique_ptr<DeviceRuntime> runtime, const DeviceOptions& options)
      : config_(config),
        record_decode_(options.record_decode && !options.profile),
        runtime_(std::move(runtime)),
        profile_(*runtime_, options.profile),
        hidden_(static_cast<uint32_t>(PlainAxis(config.hidden_size).padded())),
        ropes_(*runtime_, config_, DeviceHeadSize(config.head_dim) / 2) {}

  absl::Status Load(const Checkpoint& checkpoint, const NumericsSpec& numerics);
  const ModelInfo& info() const override { return info_; }
  OpTotals profile() const override { return profile_.totals(); }
  absl::Status ReserveCache(int32_t blocks) override;
  absl::Status CopyBlock(int32_t from, int32_t to) override;
  absl::Status Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) override;
  TokenDrawing* drawing() override { return this; }
  absl::Status ForwardAndDraw(std::span<const Segment> segments, std::span<const RowDraw> draws,
                              std::span<int32_t> tokens) override;
  absl::Status ReadLogits(std::span<const int32_t> rows, std::span<float> logits) override;

 private:
  absl::StatusOr<Block> LoadBlock(int64_t layer, const DeviceWeights& weights) const;
  absl::Status RunBlock(size_t layer, DeviceStep& step, const DeviceRows& x, Trace* trace);
  absl::Status RunMlp(const Block& block, uint32_t tokens, const DeviceRows& x, const DeviceRows& out);
  static OpWork MlpWork(const Block& block, uint32_t tokens);
  absl::Status Head(const DeviceStep& step, const DeviceRows& x, const DeviceArray<float>& logits);
  // The forward pass, up to the wanted rows' logits.
  absl::Status Enqueue(DeviceStep& step, const DeviceArray<float>& logits, Trace* trace);
  // The same for segments that have been checked; leaves logits_.
  absl::Status Run(std::span<const Segment> segments, Trace* trace);
  absl::Status MakeCache(int32_t blocks);
  uint32_t LastRopeRow(uint32_t position) const;
  const DeviceLinear& head() const { return config_.tied_embeddings ? embedding_ : head_; }
  absl::Status Norm(uint32_t rows, const DeviceRows& x, const DeviceRows& weight, const DeviceRows& y);
  absl::Status AddResidual(uint32_t rows, const DeviceRows& x, const DeviceRows& y);
  absl::StatusOr<DeviceRows> Rows(uint32_t rows, const char* name) {
    return DeviceRows::Make(*runtime_, size_t{rows} * hidden_, name);
  }
  absl::StatusOr<std::vector<float>> ToHost(const DeviceRows& x, uint32_t rows) const;

  const ModelConfig config_;
  const bool record_decode_;
  const std::unique_ptr<DeviceRuntime> runtime_;  // before all that lies in its memory
  DeviceProfile profile_;
  const uint32_t hidden_;  // padded
  DeviceRopes ropes_;
  ModelInfo info_;
  DeviceCache cache_;
  int32_t blocks_reserved_ = 0;    // of callers; the cache may have one more
  DeviceLinear embedding_, head_;  // head_: unused when tied
  std::vector<Block> blocks_;
  DeviceRows final_norm_;
  std::optional<DecodeSteps> decode_;  // from ReserveCache on, if they are recorded
  DeviceArray<float> step_logits_;     // of the last step, if it was none of decode_'s
  DeviceLogits logits_;                // of the last step
  int32_t logit_rows_ = 0;             // of it
};

absl::StatusOr<Block> DeviceBackend::LoadBlock(int64_t layer, const DeviceWeights& weights) const {
  const std::string at = fmt::format("model.layers.{}.", layer);
  const DeviceAxis hidden = PlainAxis(config_.hidden_size), inner = PlainAxis(config_.intermediate_size);
  IHA_ASSIGN_OR_RETURN(DeviceAttention attention, DeviceAttention::Make(config_, layer, weights));
  Block block{.attention = std::move(attention),
              .input_norm = {},
              .before_mlp = {},
              .after_attention = {},
              .after_mlp = {},
              .gate = {},
              .up = {},
              .down = {}};
  IHA_ASSIGN_OR_RETURN(block.input_norm, weights.Vector(at + "input_layernorm.weight", hidden));
  IHA_ASSIGN_OR_RETURN(DeviceRows post, weights.Vector(at + "post_attention_layernorm.weight", hidden));
  if (config_.sandwich_norms) {
    block.after_attention = std::move(post);
    IHA_ASSIGN_OR_RETURN(block.before_mlp, weights.Vector(at + "pre_feedforward_layernorm.weight", hidden));
    IHA_ASSIGN_OR_RETURN(block.after_mlp, weights.Vector(at + "post_feedforward_layernorm.weight", hidden));
  } else {
    block.before_mlp = std::move(post);  // the Llama name for the norm in front of the MLP
  }
  if (config_.mlp == checkpoint::MlpKind::kGated) {
    IHA_ASSIGN_OR_RETURN(block.gate, weights.Linear(at + "mlp.gate_proj", inner, hidden, config_.mlp_bias));
  }
  IHA_ASSIGN_OR_RETURN(block.up, weights.Linear(at + "mlp.up_proj", inner, hidden, config_.mlp_bias));
  IHA_ASSIGN_OR_RETURN(block.down, weights.Linear(at + "mlp.down_proj", hidden, inner, config_.mlp_bias));
  return block;
}

absl::Status DeviceBackend::Load(const Checkpoint& checkpoint, const NumericsSpec& numerics) {
  IHA_RETURN_IF_ERROR(CheckDeviceLayers(config_, runtime_->MaxSharedBytes()));
  const Digest digest = checkpoint.WeightsDigest();  // first, while no page has been dropped
  const DeviceWeights weights(checkpoint, *runtime_);
  const DeviceAxis vocabulary = PlainAxis(config_.vocab_size), hidden = PlainAxis(config_.hidden_size);
  IHA_ASSIGN_OR_RETURN(embedding_, weights.Linear("model.embed_tokens", vocabulary, hidden, false));
  if (!config_.tied_embeddings) {
    IHA_ASSIGN_OR_RETURN(head_, weights.Linear("lm_head", vocabulary, hidden, false));
  }
  std::vector<DeviceCache::LayerShape> caches;
  for (int64_t layer = 0; layer < config_.num_layers(); layer++) {
    IHA_ASSIGN_OR_RETURN(Block block, LoadBlock(layer, weights));
    caches.push_back(block.attention.cache_shape());
    // A window as long as the context hides nothing.
    if (caches.back().window >= config_.context_tokens) caches.back().window = 0;
    blocks_.push_back(std::move(block));
  }
  IHA_ASSIGN_OR_RETURN(final_norm_, weights.Vector("model.norm.weight", hidden));
  cache_ =
      DeviceCache(static_cast<uint32_t>(config_.num_kv_heads), DeviceHeadSize(config_.head_dim), std::move(caches));
  info_ = {.family = NameOf(config_.family),
           .vocab_size = static_cast<int32_t>(config_.vocab_size),
           .context_tokens = config_.context_tokens,
           .kv_block_bytes = cache_.block_bytes(),
           .spare_blocks = record_decode_ ? 1 : 0,  // MakeCache
           .kv_windows = cache_.windows(),
           .device_bytes = runtime_->FreeBytes(),
           .numerics_id = numerics.Id(),
           .weights = digest};
  checkpoint.DropPages();
  return absl::OkStatus();
}

absl::Status DeviceBackend::ReserveCache(int32_t blocks) {
  IHA_RETURN_IF_ERROR(CheckReservation(blocks_reserved_, blocks));
  IHA_RETURN_IF_ERROR(WithinHostMemory("KV cache", [&] { return MakeCache(blocks); }));
  blocks_reserved_ = blocks;
  return absl::OkStatus();
}

absl::Status DeviceBackend::MakeCache(int32_t blocks) {
  IHA_RETURN_IF_ERROR(cache_.Reserve(*runtime_, blocks + info_.spare_blocks));
  if (!record_decode_) return absl::OkStatus();
  decode_.emplace(DecodeSteps::Model{
      .runtime = runtime_.get(),
      .cache = &cache_,
      .ropes = &ropes_,
      .last_rope_row = [this](uint32_t position) { return LastRopeRow(position); },
      .context_tokens = config_.context_tokens,
      .n = head().n,
      .spare_block = blocks,
      .launches = [this](DeviceStep& step,
                         const DeviceArray<float>& logits) { return Enqueue(step, logits, nullptr); }});
  return absl::OkStatus();
}

absl::Status DeviceBackend::CopyBlock(int32_t from, int32_t to) {
  if (from < 0 || to < 0 || from >= blocks_reserved_ || to >= blocks_reserved_) {
    return InvalidArgument("CopyBlock({}, {}): expected block ids below {}", from, to, blocks_reserved_);
  }
  if (from == to) return absl::OkStatus();
  return WithinHostMemory("copy of a block", [&] { return cache_.CopyBlock(*runtime_, from, to); });
}

absl::Status DeviceBackend::Norm(uint32_t rows, const DeviceRows& x, const DeviceRows& weight, const DeviceRows& y) {
  const kernels::RmsNormGpuArgs args{.x = x.data(),
                                     .weight = weight.data(),
                                     .y = y.data(),
                                     .rows = rows,
                                     .n = hidden_,
                                     .ldx = hidden_,
                                     .ldy = hidden_,
                                     .eps = static_cast<float>(config_.rms_norm_eps),
                                     .weight_plus_one = config_.norm_plus_one,
                                     .mean_of = static_cast<uint32_t>(config_.hidden_size)};
  return profile_.Time(Op::kNorm, {},
                       [&] { return runtime_->Check(kernels::RmsNormGpu(args, runtime_->stream()), "norm"); });
}

absl::Status DeviceBackend::AddResidual(uint32_t rows, const DeviceRows& x, const DeviceRows& y) {
  const kernels::AddGpuArgs args{
      .x = x.data(), .y = y.data(), .rows = rows, .n = hidden_, .ldx = hidden_, .ldy = hidden_};
  return profile_.Time(Op::kNorm, {},
                       [&] { return runtime_->Check(kernels::AddInPlaceGpu(args, runtime_->stream()), "residual"); });
}

absl::StatusOr<std::vector<float>> DeviceBackend::ToHost(const DeviceRows& x, uint32_t rows) const {
  IHA_ASSIGN_OR_RETURN(const std::vector<uint16_t> bits, x.ToHost());
  const auto hidden = static_cast<size_t>(config_.hidden_size);
  std::vector<float> values;
  values.reserve(rows * hidden);
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < hidden; i++) values.push_back(kernels::WidenBF16(bits[row * hidden_ + i]));
  }
  return values;
}

OpWork DeviceBackend::MlpWork(const Block& block, uint32_t tokens) {
  OpWork work = WorkOf(block.up, tokens);
  work += WorkOf(block.down, tokens);
  return block.gate.weights.empty() ? work : work += WorkOf(block.gate, tokens);
}

absl::Status DeviceBackend::RunMlp(const Block& block, uint32_t tokens, const DeviceRows& x, const DeviceRows& out) {
  const uint32_t inner = block.up.n;
  IHA_ASSIGN_OR_RETURN(const DeviceRows up, DeviceRows::Make(*runtime_, size_t{tokens} * inner, "up"));
  IHA_RETURN_IF_ERROR(ApplyLinear(*runtime_, block.up, x.data(), tokens, up.data()));
  DeviceRows gate;
  if (!block.gate.weights.empty()) {
    IHA_ASSIGN_OR_RETURN(gate, DeviceRows::Make(*runtime_, size_t{tokens} * inner, "gate"));
    IHA_RETURN_IF_ERROR(ApplyLinear(*runtime_, block.gate, x.data(), tokens, gate.data()));
  }
  const DeviceRows& activated = gate.empty() ? up : gate;
  IHA_RETURN_IF_ERROR(runtime_->Check(kernels::ActivationMulGpu({.gate = activated.data(),
                                                                 .up = gate.empty() ? nullptr : up.data(),
                                                                 .out = activated.data(),
                                                                 .rows = tokens,
                                                                 .n = inner,
                                                                 .ld_gate = inner,
                                                                 .ld_up = inner,
                                                                 .ld_out = inner,
                                                                 .activation = ActivationOf(config_.activation)},
                                                                runtime_->stream()),
                                      "activation"));
  return ApplyLinear(*runtime_, block.down, activated.data(), tokens, out.data());
}

absl::Status DeviceBackend::RunBlock(size_t layer, DeviceStep& step, const DeviceRows& x, Trace* trace) {
  const Block& block = blocks_[layer];
  const uint32_t n = step.tokens();
  IHA_ASSIGN_OR_RETURN(const DeviceRows normed, Rows(n, "normed"));
  IHA_ASSIGN_OR_RETURN(const DeviceRows update, Rows(n, "update"));
  IHA_RETURN_IF_ERROR(Norm(n, x, block.input_norm, normed));
  IHA_RETURN_IF_ERROR(
      block.attention.Forward(*runtime_, profile_, step, ropes_, cache_.At(layer), normed.data(), update.data()));
  if (trace != nullptr) {
    IHA_ASSIGN_OR_RETURN(std::vector<float> out, ToHost(update, n));
    trace->attn_out.push_back(std::move(out));
  }
  if (config_.sandwich_norms) IHA_RETURN_IF_ERROR(Norm(n, update, block.after_attention, update));
  IHA_RETURN_IF_ERROR(AddResidual(n, x, update));
  IHA_RETURN_IF_ERROR(Norm(n, x, block.before_mlp, normed));
  IHA_RETURN_IF_ERROR(profile_.Time(Op::kMlp, MlpWork(block, n), [&] { return RunMlp(block, n, normed, update); }));
  if (config_.sandwich_norms) IHA_RETURN_IF_ERROR(Norm(n, update, block.after_mlp, update));
  return AddResidual(n, x, update);
}

// Only the wanted rows go through the final norm and the head.
absl::Status DeviceBackend::Head(const DeviceStep& step, const DeviceRows& x, const DeviceArray<float>& logits) {
  const auto rows = static_cast<uint32_t>(step.logit_rows().size());
  if (rows == 0) return absl::OkStatus();
  IHA_ASSIGN_OR_RETURN(const DeviceRows last, Rows(rows, "last rows"));
  IHA_RETURN_IF_ERROR(runtime_->Check(
      kernels::EmbedGpu(
          {.table = x.data(), .ids = step.logit_rows().data(), .out = last.data(), .rows = rows, .n = hidden_},
          runtime_->stream()),
      "wanted rows"));
  IHA_RETURN_IF_ERROR(Norm(rows, last, final_norm_, last));
  return profile_.Time(Op::kHead, WorkOf(head(), rows),
                       [&] { return ApplyLinear(*runtime_, head(), last.data(), rows, logits.data()); });
}

absl::Status DeviceBackend::Enqueue(DeviceStep& step, const DeviceArray<float>& logits, Trace* trace) {
  IHA_ASSIGN_OR_RETURN(const DeviceRows x, Rows(step.tokens(), "residual stream"));
  const kernels::EmbedGpuArgs args{.table = embedding_.weights.data(),
                                   .ids = step.ids().data(),
                                   .out = x.data(),
                                   .rows = step.tokens(),
                                   .n = hidden_,
                                   .scale = static_cast<float>(config_.embedding_scale)};
  IHA_RETURN_IF_ERROR(profile_.Time(
      Op::kEmbedding, {}, [&] { return runtime_->Check(kernels::EmbedGpu(args, runtime_->stream()), "embedding"); }));
  for (size_t layer = 0; layer < blocks_.size(); layer++) IHA_RETURN_IF_ERROR(RunBlock(layer, step, x, trace));
  return Head(step, x, logits);
}

uint32_t DeviceBackend::LastRopeRow(uint32_t position) const {
  uint32_t last = 0;
  for (const Block& block : blocks_) last = std::max(last, block.attention.LastRopeRow(position));
  return last;
}

absl::Status DeviceBackend::Run(std::span<const Segment> segments, Trace* trace) {
  profile_.Begin();
  logits_ = {};
  step_logits_ = {};
  logit_rows_ = 0;
  for (const Segment& segment : segments) logit_rows_ += static_cast<int32_t>(segment.logit_rows.size());
  const auto left = [&](const DeviceArray<float>& logits) {
    logits_ = {.data = logits.data(), .n = static_cast<uint32_t>(config_.vocab_size), .ld = head().n};
  };
  if (decode_.has_value() && trace == nullptr && DecodeSteps::Fits(segments)) {
    IHA_ASSIGN_OR_RETURN(const DeviceArray<float>* const logits, decode_->Run(segments));
    left(*logits);
    return absl::OkStatus();
  }
  IHA_ASSIGN_OR_RETURN(DeviceStep step, DeviceStep::Make(*runtime_, cache_, segments));
  if (step.tokens() == 0) return absl::OkStatus();
  IHA_RETURN_IF_ERROR(ropes_.Extend(LastRopeRow(step.last_position())));
  IHA_ASSIGN_OR_RETURN(step_logits_, DeviceArray<float>::Make(*runtime_, size_t(logit_rows_) * head().n, "logits"));
  IHA_RETURN_IF_ERROR(Enqueue(step, step_logits_, trace));
  left(step_logits_);
  return absl::OkStatus();
}

absl::Status DeviceBackend::Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) {
  IHA_RETURN_IF_ERROR(CheckStep(segments, logits.size(), info_, blocks_reserved_));
  return WithinHostMemory(kStep, [&]() -> absl::Status {
    IHA_RETURN_IF_ERROR(Run(segments, trace));
    std::vector<int32_t> all(static_cast<size_t>(logit_rows_));
    std::iota(all.begin(), all.end(), 0);
    IHA_RETURN_IF_ERROR(DownloadLogits(*runtime_, logits_, all, logits));
    return profile_.End();
  });
}

absl::Status DeviceBackend::ForwardAndDraw(std::span<const Segment> segments, std::span<const RowDraw> draws,
                                           std::span<int32_t> tokens) {
  const size_t logits = draws.size() * static_cast<size_t>(info_.vocab_size);
  IHA_RETURN_IF_ERROR(CheckStep(segments, logits, info_, blocks_reserved_));
  if (tokens.size() != draws.size()) {
    return InvalidArgument("{} tokens for {} draws; expected one for each", tokens.size(), draws.size());
  }
  return WithinHostMemory(kStep, [&]() -> absl::Status {
    IHA_RETURN_IF_ERROR(Run(segments, nullptr));
    IHA_RETURN_IF_ERROR(DrawOnDevice(*runtime_, logits_, draws, tokens));
    return profile_.End();
  });
}

absl::Status DeviceBackend::ReadLogits(std::span<const int32_t> rows, std::span<float> logits) {
  const bool known = rows.empty() || (rows.front() >= 0 && rows.back() < logit_rows_);
  if (!known || !std::ranges::is_sorted(rows) || logits.size() != rows.size() * logits_.n) {
    return InvalidArgument("{} floats for {} rows of logits; expected {} for each, rows below {}", logits.size(),
                           rows.size(), logits_.n, logit_rows_);
  }
  return WithinHostMemory("logits", [&] { return DownloadLogits(*runtime_, logits_, rows, logits); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenDeviceBackend(const Checkpoint& checkpoint, const NumericsSpec& numerics,
                                                           std::unique_ptr<DeviceRuntime> runtime,
                                                           const DeviceOptions& options) {
  if (numerics.weights_dtype != "bf16" || numerics.activation_dtype != "bf16" || numerics.kv_dtype != "bf16") {
    return InvalidArgument("numerics {}: the device keeps weights, activations and KV cache in bf16", numerics.Id());
  }
  std::unique_ptr<DeviceBackend> backend;
  const absl::Status loaded = WithinHostMemory("weights", [&] {
    backend = std::make_unique<DeviceBackend>(checkpoint.config(), std::move(runtime), options);
    return backend->Load(checkpoint, numerics);
  });
  IHA_RETURN_IF_ERROR(Annotate(loaded, checkpoint.directory()));
  return backend;
}

}  // namespace iha::model
