#include "model/transformer/cpu_backend.h"

#include <fmt/format.h>

#include "common/errors.h"
#include "common/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/support/thread_pool.h"
#include "model/step_check.h"
#include "model/transformer/attention_layer.h"
#include "model/transformer/kv_cache.h"
#include "model/transformer/kv_placement.h"
#include "model/transformer/mlp_layer.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::ModelConfig;

// Norm weights of one block; the last two only in families with sandwich norms.
struct BlockNorms {
  std::vector<float> input, before_mlp, after_attention, after_mlp;
};

struct Block {
  BlockNorms norms;
  std::unique_ptr<AttentionLayer> attention;
  KvPlacement::Place cache;
  MlpLayer mlp;
};

absl::StatusOr<BlockNorms> ReadNorms(const ModelConfig& config, int64_t layer, const Packer& packer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const int64_t n = config.hidden_size;
  BlockNorms norms;
  IHA_ASSIGN_OR_RETURN(norms.input, packer.Vector(prefix + "input_layernorm.weight", n));
  IHA_ASSIGN_OR_RETURN(std::vector<float> post, packer.Vector(prefix + "post_attention_layernorm.weight", n));
  if (!config.sandwich_norms) {
    norms.before_mlp = std::move(post);  // the Llama name for the norm in front of the MLP
    return norms;
  }
  norms.after_attention = std::move(post);
  IHA_ASSIGN_OR_RETURN(norms.before_mlp, packer.Vector(prefix + "pre_feedforward_layernorm.weight", n));
  IHA_ASSIGN_OR_RETURN(norms.after_mlp, packer.Vector(prefix + "post_feedforward_layernorm.weight", n));
  return norms;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Checkpoint& checkpoint, const CpuBackendOptions& options)
      : config_(checkpoint.config()),
        pool_(options.threads),
        ropes_(config_.ropes, config_.head_dim),
        cache_(0),
        profile_(options.clock) {}

  absl::Status Load(const Checkpoint& checkpoint, const CpuBackendOptions& options);

  const ModelInfo& info() const override { return info_; }
  absl::Status ReserveCache(int32_t blocks) override { return cache_.Reserve(blocks); }
  absl::Status CopyBlock(int32_t from, int32_t to) override;
  absl::Status Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) override;
  OpTotals profile() const override { return profile_.totals(); }

 private:
  absl::Status LoadEmbedding(const Packer& packer);
  void Run(std::span<const Segment> segments, std::span<float> logits, Trace* trace);
  StepTokens Flatten(std::span<const Segment> segments, size_t group);
  void Embed(std::span<const Segment> segments);
  void RunBlock(Block& block, const StepTokens& tokens, Trace* trace);
  void KeepLogitRows(std::span<const Segment> segments);
  void Head(std::span<float> logits);
  void Norm(size_t rows, const float* x, const std::vector<float>& weight, float* y);
  void AddResidual(size_t rows, const float* y);

  const ModelConfig config_;
  kernels::ThreadPool pool_;
  RopeTables ropes_;
  KvCache cache_;
  ModelInfo info_;
  OpProfile profile_;
  Linear embedding_;  // unused when tied: the head's rows are the embedding then
  std::vector<Block> blocks_;
  std::vector<float> final_norm_;
  Linear head_;
  // Scratch of one step: [tokens][hidden] each, in the last block [logit rows][hidden] from its MLP on.
  std::vector<float> x_, normed_, update_;
  size_t rows_ = 0;  // of x_ that still count
};

absl::Status CpuBackend::Load(const Checkpoint& checkpoint, const CpuBackendOptions& options) {
  const CacheOptions cache{
      .type = options.numerics.kv_dtype == "bf16" ? kernels::StorageType::kBF16 : kernels::StorageType::kF32,
      .iha_form = options.iha_cache};
  // First, so that each page is read once and can go as soon as it is packed.
  const Digest weights = checkpoint.WeightsDigest(options.threads);
  const Packer packer(checkpoint, pool_);
  IHA_RETURN_IF_ERROR(LoadEmbedding(packer));
  std::vector<LayerCache> caches;
  for (int64_t layer = 0; layer < config_.num_layers(); layer++) {
    IHA_ASSIGN_OR_RETURN(BlockNorms norms, ReadNorms(config_, layer, packer));
    IHA_ASSIGN_OR_RETURN(auto attention, MakeAttentionLayer(config_, layer, cache, packer, ropes_));
    IHA_ASSIGN_OR_RETURN(MlpLayer mlp, MlpLayer::Make(config_, layer, packer));
    const int64_t window = checkpoint::WindowTokens(config_.layers[static_cast<size_t>(layer)]);
    // A window as long as the context hides nothing.
    caches.push_back({.bytes = attention->cache_bytes(), .window = window < config_.context_tokens ? window : 0});
    blocks_.push_back({std::move(norms), std::move(attention), {}, std::move(mlp)});
  }
  const KvPlacement placement = PlaceLayers(caches);
  for (size_t layer = 0; layer < blocks_.size(); layer++) blocks_[layer].cache = placement.layers[layer];
  IHA_ASSIGN_OR_RETURN(final_norm_, packer.Vector("model.norm.weight", config_.hidden_size));
  cache_ = KvCache(placement.block_bytes);
  info_ = {.family = NameOf(config_.family),
           .vocab_size = static_cast<int32_t>(config_.vocab_size),
           .context_tokens = config_.context_tokens,
           .kv_block_bytes = static_cast<int64_t>(cache_.block_bytes()),
           .kv_windows = placement.windows,
           .numerics_id = options.numerics.Id(),
           .weights = weights};
  checkpoint.DropPages();
  return absl::OkStatus();
}

absl::Status CpuBackend::LoadEmbedding(const Packer& packer) {
  const LinearPart table[] = {{"model.embed_tokens", config_.vocab_size, false}};
  const LinearPart head[] = {{"lm_head", config_.vocab_size, false}};
  if (config_.tied_embeddings) {
    IHA_ASSIGN_OR_RETURN(head_, packer.MakeLinear(table, config_.hidden_size));
    return absl::OkStatus();
  }
  IHA_ASSIGN_OR_RETURN(embedding_, packer.MakeLinear(table, config_.hidden_size));
  IHA_ASSIGN_OR_RETURN(head_, packer.MakeLinear(head, config_.hidden_size));
  return absl::OkStatus();
}

absl::Status CpuBackend::CopyBlock(int32_t from, int32_t to) {
  if (from < 0 || to < 0 || from >= cache_.blocks() || to >= cache_.blocks()) {
    return InvalidArgument("CopyBlock({}, {}): expected block ids below {}", from, to, cache_.blocks());
  }
  cache_.Copy(from, to);
  return absl::OkStatus();
}

StepTokens CpuBackend::Flatten(std::span<const Segment> segments, size_t group) {
  StepTokens tokens{.segments = segments, .positions = {}, .block_of_token = {}, .tables = {}, .profile = &profile_};
  for (const Segment& segment : segments) {
    const std::span<const int32_t> blocks = TableOf(segment, group, info_.kv_windows.size());
    auto& table = tokens.tables.emplace_back();
    for (const int32_t block : blocks) table.push_back(block == kNoKvBlock ? nullptr : cache_.Block(block));
    for (int64_t i = 0; i < static_cast<int64_t>(segment.tokens.size()); i++) {
      const int64_t position = segment.start + i;
      tokens.positions.push_back(static_cast<uint32_t>(position));
      tokens.block_of_token.push_back(cache_.Block(blocks[static_cast<size_t>(position / kKvBlockTokens)]));
    }
  }
  return tokens;
}

void CpuBackend::Embed(std::span<const Segment> segments) {
  const size_t hidden = static_cast<size_t>(config_.hidden_size);
  const kernels::PackedWeights& table = (config_.tied_embeddings ? head_ : embedding_).weights;
  const float scale = static_cast<float>(config_.embedding_scale);
  float* at = x_.data();
  for (const Segment& segment : segments) {
    for (const int32_t id : segment.tokens) {
      for (size_t k = 0; k < hidden; k++) at[k] = table.At(static_cast<size_t>(id), k) * scale;
      at += hidden;
    }
  }
}

void CpuBackend::Norm(size_t rows, const float* x, const std::vector<float>& weight, float* y) {
  const size_t hidden = weight.size();
  const kernels::RmsNormShape shape{.rows = rows,
                                    .n = hidden,
                                    .ldx = hidden,
                                    .ldy = hidden,
                                    .eps = static_cast<float>(config_.rms_norm_eps),
                                    .weight_plus_one = config_.norm_plus_one};
  profile_.Time(Op::kNorm, {}, [&] { kernels::RmsNorm(shape, x, weight.data(), y, pool_); });
}

void CpuBackend::AddResidual(size_t rows, const float* y) {
  const size_t hidden = static_cast<size_t>(config_.hidden_size);
  profile_.Time(Op::kNorm, {},
                [&] { kernels::AddInPlace({.rows = rows, .n = hidden, .ld = hidden}, x_.data(), y, hidden, pool_); });
}

void CpuBackend::RunBlock(Block& block, const StepTokens& tokens, Trace* trace) {
  Norm(rows_, x_.data(), block.norms.input, normed_.data());
  block.attention->Forward(tokens, block.cache.offset, normed_.data(), update_.data(), pool_);
  if (trace != nullptr)
    trace->attn_out.emplace_back(update_.begin(), update_.begin() + static_cast<std::ptrdiff_t>(x_.size()));
  // Later tokens see the keys and values alone: what the last block makes of other rows goes nowhere.
  if (&block == &blocks_.back()) KeepLogitRows(tokens.segments);
  if (rows_ == 0) return;
  if (config_.sandwich_norms) Norm(rows_, update_.data(), block.norms.after_attention, update_.data());
  AddResidual(rows_, update_.data());
  Norm(rows_, x_.data(), block.norms.before_mlp, normed_.data());
  profile_.Time(Op::kMlp, block.mlp.Work(rows_),
                [&] { block.mlp.Forward(rows_, normed_.data(), update_.data(), pool_); });
  if (config_.sandwich_norms) Norm(rows_, update_.data(), block.norms.after_mlp, update_.data());
  AddResidual(rows_, update_.data());
}

// Moves the rows whose logits are wanted to the front of x_ and update_.
void CpuBackend::KeepLogitRows(std::span<const Segment> segments) {
  const size_t hidden = static_cast<size_t>(config_.hidden_size);
  size_t first_token = 0;
  rows_ = 0;
  for (const Segment& segment : segments) {
    for (const int32_t row : segment.logit_rows) {
      const size_t from = first_token + static_cast<size_t>(row), to = rows_++;  // never before its place
      if (from == to) continue;
      for (std::vector<float>* values : {&x_, &update_}) {
        std::copy_n(values->data() + from * hidden, hidden, values->data() + to * hidden);
      }
    }
    first_token += segment.tokens.size();
  }
}

void CpuBackend::Head(std::span<float> logits) {
  if (rows_ == 0) return;
  Norm(rows_, x_.data(), final_norm_, normed_.data());
  profile_.Time(Op::kHead, WorkOf(head_, rows_), [&] {
    Apply(head_, normed_.data(), static_cast<size_t>(config_.hidden_size), rows_, logits.data(), head_.weights.n(),
          pool_);
  });
}

absl::Status CpuBackend::Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) {
  IHA_RETURN_IF_ERROR(CheckStep(segments, logits.size(), info_, cache_.blocks()));
  try {
    Run(segments, logits, trace);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {  // scratch keeps the size that it had: the next step is none the worse
    size_t tokens = 0;
    for (const Segment& segment : segments) tokens += segment.tokens.size();
    return ResourceExhausted("a step of {} tokens: out of memory; lower the batch or the prompt's chunks", tokens);
  }
}

void CpuBackend::Run(std::span<const Segment> segments, std::span<float> logits, Trace* trace) {
  std::vector<StepTokens> groups;  // they differ in their blocks
  for (size_t group = 0; group < info_.kv_windows.size(); group++) groups.push_back(Flatten(segments, group));
  const StepTokens& tokens = groups[0];
  if (tokens.count() == 0) return;
  const size_t size = tokens.count() * static_cast<size_t>(config_.hidden_size);
  x_.resize(size);
  normed_.resize(size);
  update_.resize(size);
  rows_ = tokens.count();
  profile_.Time(Op::kEmbedding, {}, [&] { Embed(segments); });
  for (Block& block : blocks_) RunBlock(block, groups[block.cache.group], trace);
  Head(logits);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCpuBackend(const Checkpoint& checkpoint,
                                                        const CpuBackendOptions& options) {
  const NumericsSpec& n = options.numerics;
  if (n.weights_dtype != "stored" || n.activation_dtype != "f32" || (n.kv_dtype != "f32" && n.kv_dtype != "bf16")) {
    return InvalidArgument("numerics {}: the CPU engine keeps weights as stored, activations f32, KV cache f32 or bf16",
                           n.Id());
  }
  try {
    auto backend = std::make_unique<CpuBackend>(checkpoint, options);
    IHA_RETURN_IF_ERROR(Annotate(backend->Load(checkpoint, options), checkpoint.directory()));
    return backend;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("{}: out of memory while packing the weights", checkpoint.directory());
  }
}

}  // namespace iha::model
