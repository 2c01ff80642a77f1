#include "model/transformer/iha_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/status_macros.h"
#include "kernels/iha_collapse/iha_collapse.h"
#include "model/transformer/attention_work.h"

namespace iha::model {

using checkpoint::LayerSpec;
using checkpoint::ModelConfig;
using kernels::IhaMix;
using kernels::IhaSource;
using kernels::StorageType;

class IhaAttention::BlockMaker final : public kernels::KeyBlockMaker {
 public:
  BlockMaker(const IhaAttention& layer, std::span<const void* const> blocks, size_t cache_offset, size_t head)
      : layer_(layer), blocks_(blocks), cache_offset_(cache_offset), head_(head) {}

  void Make(size_t b, size_t slots, void* block) const override {
    const size_t pseudo = layer_.shape_.pseudo;
    const auto* base = static_cast<const std::byte*>(blocks_[b / pseudo]) + cache_offset_;
    const auto source = [&](const void* at) {
      return IhaSource{at, layer_.layout_.type, layer_.width(), layer_.shape_.d};
    };
    kernels::IhaMixBlock(layer_.shape_, layer_.KeyMix(source(base)),
                         layer_.ValueMix(source(base + layer_.base_bytes())), layer_.layout_, head_, b % pseudo, slots,
                         block);
  }
  [[nodiscard]] const void* Source(size_t b) const override { return blocks_[b / layer_.shape_.pseudo]; }

 private:
  const IhaAttention& layer_;
  std::span<const void* const> blocks_;  // of 64 tokens
  size_t cache_offset_;
  size_t head_;
};

IhaAttention::IhaAttention(const ModelConfig& config, int64_t layer, const CacheOptions& cache, AttentionInputs inputs,
                           AttentionOutput output, RopeTables& ropes)
    : shape_{.heads = static_cast<size_t>(config.num_heads),
             .pseudo = static_cast<size_t>(config.layers[static_cast<size_t>(layer)].pseudo_heads),
             .d = static_cast<size_t>(config.head_dim)},
      spec_(config.layers[static_cast<size_t>(layer)]),
      mixed_cache_(checkpoint::IhaCachesMixed(config, spec_, cache.iha_form)),
      scale_(static_cast<float>(config.attention_scale)),
      norm_eps_(static_cast<float>(config.rms_norm_eps)),
      norm_plus_one_(config.norm_plus_one),
      pairing_(PairingOf(spec_)),
      layout_(checkpoint::KvLayoutOf(config, spec_, cache.type)),
      ropes_(ropes),
      inputs_(std::move(inputs)),
      output_(std::move(output)) {}

absl::StatusOr<std::unique_ptr<AttentionLayer>> IhaAttention::Make(const ModelConfig& config, int64_t layer,
                                                                   const CacheOptions& cache, const Packer& packer,
                                                                   RopeTables& ropes) {
  IHA_ASSIGN_OR_RETURN(AttentionInputs inputs, AttentionInputs::Make(config, layer, packer));
  IHA_ASSIGN_OR_RETURN(AttentionOutput output,
                       AttentionOutput::Make(config, layer, packer, inputs.heads(), inputs.d()));
  std::unique_ptr<IhaAttention> self(
      new IhaAttention(config, layer, cache, std::move(inputs), std::move(output), ropes));
  IHA_RETURN_IF_ERROR(self->Load(config, layer, packer));
  return self;
}

absl::Status IhaAttention::Load(const ModelConfig& config, int64_t layer, const Packer& packer) {
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const int64_t heads = config.num_heads, pseudo = spec_.pseudo_heads;
  const bool stp = spec_.alpha_layout == checkpoint::AlphaLayout::kSourceTargetPseudo;
  const std::vector<int64_t> shape =
      stp ? std::vector<int64_t>{heads, heads, pseudo} : std::vector<int64_t>{heads, pseudo, heads};
  for (const auto& [name, packed] : {std::pair{"q", &alpha_q_}, {"k", &alpha_k_}, {"v", &alpha_v_}}) {
    IHA_ASSIGN_OR_RETURN(const std::vector<float> alpha, packer.Tensor(prefix + "iha.alpha_" + name, shape));
    packed->resize(alpha.size());
    kernels::IhaPackAlpha(
        stp ? kernels::IhaAlphaLayout::kSourceTargetPseudo : kernels::IhaAlphaLayout::kTargetPseudoSource, shape_.heads,
        shape_.pseudo, alpha.data(), packed->data());
  }
  const int64_t columns = spec_.collapse == checkpoint::CollapseKind::kGlobal ? heads * pseudo : pseudo;
  const int64_t collapse_shape[] = {heads, columns};
  IHA_ASSIGN_OR_RETURN(collapse_, packer.Tensor(prefix + "iha.collapse", collapse_shape));
  if (post_mix()) {
    IHA_ASSIGN_OR_RETURN(q_norm_, packer.Vector(prefix + "q_norm.weight", config.head_dim));
    IHA_ASSIGN_OR_RETURN(k_norm_, packer.Vector(prefix + "k_norm.weight", config.head_dim));
  }
  const std::vector<double> frequency =
      checkpoint::InverseFrequencies(config.ropes[static_cast<size_t>(spec_.rope)], config.head_dim);
  rotate_cos_.resize(shape_.pseudo * frequency.size());
  rotate_sin_.resize(shape_.pseudo * frequency.size());
  kernels::FillRopeTable(frequency.data(), frequency.size(), 0, shape_.pseudo, 1.0, rotate_cos_.data(),
                         rotate_sin_.data());
  return absl::OkStatus();
}

size_t IhaAttention::cache_bytes() const {
  return mixed_cache_ ? shape_.heads * shape_.pseudo * layout_.bytes() : 2 * base_bytes();
}

void IhaAttention::Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
                           kernels::ParallelFor& parallel) {
  const size_t n = tokens.count();
  pseudo_.resize(n * shape_.pseudo * width());
  collapsed_.resize(n * width());
  OpProfile& profile = *tokens.profile;
  profile.Time(Op::kQkv, inputs_.ProjectWork(n), [&] { inputs_.Project(n, x, parallel); });
  profile.Time(Op::kPositions, MixWork(n), [&] {
    NormAndRotateHeads(tokens, parallel);
    MixQueries(n, parallel);
    Append(tokens, cache_offset, parallel);
  });
  Attend(tokens, cache_offset, parallel);
  profile.Time(Op::kCombine, CollapseWork(n), [&] { Collapse(n, parallel); });
  profile.Time(Op::kAttentionOutput, output_.Work(n),
               [&] { output_.Forward(n, x, collapsed_.data(), inputs_, out, parallel); });
}

// Each pseudo row is H products of d numbers, for the queries and, where they are cached mixed, keys and values.
OpWork IhaAttention::MixWork(size_t tokens) const {
  const double pseudo_rows = static_cast<double>(tokens * shape_.heads * shape_.pseudo);
  return {.flops = 2 * pseudo_rows * static_cast<double>(shape_.heads * shape_.d) * (mixed_cache_ ? 3 : 1), .bytes = 0};
}

OpWork IhaAttention::CollapseWork(size_t tokens) const {
  return {.flops = 2.0 * static_cast<double>(tokens * shape_.d) * static_cast<double>(collapse_.size()), .bytes = 0};
}

void IhaAttention::Collapse(size_t tokens, kernels::ParallelFor& parallel) {
  kernels::IhaCollapse({.tokens = tokens,
                        .heads = shape_.heads,
                        .pseudo = shape_.pseudo,
                        .d = shape_.d,
                        .global = spec_.collapse == checkpoint::CollapseKind::kGlobal},
                       collapse_.data(), pseudo_.data(),
                       spec_.xsa == checkpoint::Xsa::kPseudo ? pseudo_v_.data() : nullptr, collapsed_.data(), parallel);
}

// Before mixing: the norm of pre_mix and the rotation by n P (by n) that the mix commutes with; post_mix needs the rows
// of the virtual positions themselves.
void IhaAttention::NormAndRotateHeads(const StepTokens& tokens, kernels::ParallelFor& parallel) {
  const auto pseudo = static_cast<uint32_t>(virtual_positions() ? shape_.pseudo : 1);
  if (!post_mix()) {
    inputs_.Norm(parallel);
    return inputs_.Rotate(tokens.positions, pseudo, ropes_, parallel);
  }
  rope_rows_.clear();
  for (const uint32_t position : tokens.positions) rope_rows_.push_back(position * pseudo);
  rope_table_ = ropes_.Rows(spec_.rope, 1, std::ranges::max(rope_rows_) + pseudo - 1);
}

IhaMix IhaAttention::KeyMix(IhaSource source) const {
  IhaMix mix{.alpha = alpha_k_.data(), .source = source, .round = layout_.type, .pairing = pairing_};
  if (post_mix()) {
    mix.norm = k_norm_.data();
    mix.norm_eps = norm_eps_;
    mix.norm_plus_one = norm_plus_one_;
    mix.cos = rope_table_.cos;
    mix.sin = rope_table_.sin;
    mix.first_row = rope_rows_.data();
    mix.row_step = virtual_positions() ? 1 : 0;
  } else if (virtual_positions()) {
    mix.cos = rotate_cos_.data();
    mix.sin = rotate_sin_.data();
  }
  return mix;
}

IhaMix IhaAttention::ValueMix(IhaSource source) const {
  return {.alpha = alpha_v_.data(), .source = source, .round = layout_.type};
}

void IhaAttention::MixQueries(size_t tokens, kernels::ParallelFor& parallel) {
  IhaMix mix = KeyMix({inputs_.queries(), StorageType::kF32, inputs_.stride(), shape_.d});
  mix.alpha = alpha_q_.data();
  mix.round = StorageType::kF32;
  if (post_mix()) mix.norm = q_norm_.data();
  kernels::IhaMixRows(shape_, mix, tokens, pseudo_.data(), parallel);
}

IhaAttention::BaseRows IhaAttention::RoundBase(const StepTokens& tokens, kernels::ParallelFor& parallel) {
  const size_t n = tokens.count(), d = shape_.d;
  BaseRows rows{{inputs_.keys(), StorageType::kF32, inputs_.stride(), d},
                {inputs_.values(), StorageType::kF32, inputs_.stride(), d}};
  if (layout_.type == StorageType::kF32) return rows;
  const bool keys = !post_mix();  // else the mix takes them as they are
  rounded_.resize(n * 2 * width());
  parallel.Run(n, [&](size_t token, int) {
    uint16_t* to = rounded_.data() + token * 2 * width();
    if (keys) kernels::IhaStoreBase(shape_, inputs_.keys(token), d, layout_.type, to);
    kernels::IhaStoreBase(shape_, inputs_.values(token), d, layout_.type, to + width());
  });
  if (keys) rows.keys = {rounded_.data(), layout_.type, 2 * width(), d};
  rows.values = {rounded_.data() + width(), layout_.type, 2 * width(), d};
  return rows;
}

void IhaAttention::AppendBase(const StepTokens& tokens, const BaseRows& base, kernels::ParallelFor& parallel) {
  const size_t row_bytes = width() * kernels::StorageBytes(layout_.type);
  parallel.Run(tokens.count(), [&](size_t token, int) {
    uint8_t* to = slices_[token] + tokens.positions[token] % kKvBlockTokens * row_bytes;
    for (const IhaSource* source : {&base.keys, &base.values}) {
      const size_t skipped = token * source->token_stride * kernels::StorageBytes(layout_.type);
      std::memcpy(to, static_cast<const std::byte*>(source->x) + skipped, row_bytes);
      to += base_bytes();
    }
  });
}

void IhaAttention::Append(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel) {
  const size_t n = tokens.count();
  slices_.clear();
  for (uint8_t* block : tokens.block_of_token) slices_.push_back(block + cache_offset);
  const BaseRows base = RoundBase(tokens, parallel);
  if (mixed_cache_) {
    kernels::IhaMixToCache(shape_, KeyMix(base.keys), ValueMix(base.values), layout_, n, slices_.data(),
                           tokens.positions.data(), parallel);
  } else {
    AppendBase(tokens, base, parallel);
  }
  if (spec_.xsa == checkpoint::Xsa::kPseudo) {
    pseudo_v_.resize(n * shape_.pseudo * width());
    kernels::IhaMixRows(shape_, ValueMix(base.values), n, pseudo_v_.data(), parallel);
  }
}

// The virtual keys that pseudo query (position, pseudo) sees are always one range.
kernels::AttentionRow IhaAttention::RowOf(uint32_t position, uint32_t pseudo, float* row) const {
  const auto count = static_cast<uint32_t>(shape_.pseudo);
  const uint32_t index = position * count + pseudo;
  const uint32_t last = spec_.mask == checkpoint::IhaMask::kFlatCausal ? index : position * count + count - 1;
  uint32_t first = 0;
  if (spec_.window.has_value()) {
    const uint32_t size = WindowOf(spec_);
    first = spec_.window->unit == checkpoint::WindowUnit::kVirtual ? kernels::FirstVisible(index, size)
                                                                   : kernels::FirstVisible(position, size) * count;
  }
  return {.q = row, .out = row, .first = first, .last = last};
}

void IhaAttention::Attend(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel) {
  const size_t heads = shape_.heads, pseudo = shape_.pseudo;
  rows_.resize(tokens.count() * heads * pseudo);
  std::vector<std::vector<const void*>> tables(tokens.segments.size());  // virtual key blocks of head 0
  std::vector<BlockMaker> makers;
  std::vector<kernels::AttentionGroup> groups;
  makers.reserve(tokens.segments.size() * heads);
  groups.reserve(tokens.segments.size() * heads);
  size_t first_token = 0, next_row = 0;
  for (size_t s = 0; s < tokens.segments.size(); s++) {
    const size_t count = tokens.segments[s].tokens.size();
    for (const void* block : tokens.tables[s]) {
      if (!mixed_cache_) break;
      for (size_t part = 0; part < pseudo; part++) {
        tables[s].push_back(block == nullptr ? nullptr : static_cast<const std::byte*>(block) + part * layout_.bytes());
      }
    }
    for (size_t head = 0; head < heads; head++) {
      const size_t first_row = next_row;
      for (size_t token = first_token; token < first_token + count; token++) {
        for (size_t j = 0; j < pseudo; j++) {
          float* row = pseudo_.data() + ((token * heads + head) * pseudo + j) * shape_.d;
          rows_[next_row++] = RowOf(tokens.positions[token], static_cast<uint32_t>(j), row);
        }
      }
      if (!mixed_cache_) makers.emplace_back(*this, tokens.tables[s], cache_offset, head);
      groups.push_back({.blocks = tables[s].data(),
                        .head_offset = cache_offset + head * pseudo * layout_.bytes(),
                        .rows = std::span(rows_).subspan(first_row, next_row - first_row),
                        .maker = mixed_cache_ ? nullptr : &makers.back()});
    }
    first_token += count;
  }
  tokens.profile->Time(
      Op::kAttention, [&] { return WorkOf(layout_, groups, heads); },
      [&] { kernels::Attention(layout_, scale_, groups, parallel); });
}

}  // namespace iha::model
