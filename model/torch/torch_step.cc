#include "model/torch/torch_step.h"

#include <algorithm>

#include "model/checkpoint/rope.h"

namespace iha::model::torch {

using checkpoint::IhaMask;
using checkpoint::IhaPositions;
using checkpoint::LayerSpec;
using checkpoint::WindowUnit;

namespace {

at::Tensor Upload(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

int64_t SlotOf(std::span<const int32_t> blocks, int64_t position) {
  return int64_t{blocks[static_cast<size_t>(position / kKvBlockTokens)]} * kKvBlockTokens + position % kKvBlockTokens;
}

// The first position that any query from position `start` on may see.
int64_t FirstSeen(const LayerSpec& layer, int64_t start) {
  if (!layer.window.has_value()) return 0;
  const int64_t size = layer.window->size;
  if (layer.window->unit == WindowUnit::kToken) return std::max<int64_t>(0, start - size + 1);
  return std::max<int64_t>(0, start * layer.pseudo_heads - size + 1) / layer.pseudo_heads;
}

}  // namespace

Step::Step(std::span<const Segment> segments, const checkpoint::ModelConfig& config, at::Device device)
    : config_(config), device_(device) {
  std::vector<int64_t> ids, positions, slots, logit_rows;
  for (const Segment& segment : segments) {
    const int64_t count = static_cast<int64_t>(segment.tokens.size());
    for (const int32_t row : segment.logit_rows) logit_rows.push_back(tokens_ + row);
    if (count == 0) continue;
    parts_.push_back({.first = tokens_, .tokens = count, .start = segment.start, .blocks = segment.blocks});
    ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
    for (int64_t position = segment.start; position < segment.start + count; position++) {
      positions.push_back(position);
      slots.push_back(SlotOf(segment.blocks, position));
    }
    tokens_ += count;
  }
  ids_ = Upload(ids, device);
  positions_ = Upload(positions, device);
  slots_ = Upload(slots, device);
  logit_rows_ = Upload(logit_rows, device);
}

at::Tensor Step::Range(int64_t from, int64_t to) const {
  return at::arange(from, to, at::TensorOptions(at::kLong).device(device_));
}

Visible Step::MakeVisible(const Part& part, const LayerSpec& layer, bool explicit_mask) const {
  const int64_t pseudo = layer.pseudo_heads;
  const int64_t end = part.start + part.tokens;
  Visible visible;
  visible.first = FirstSeen(layer, part.start);
  std::vector<int64_t> slots;
  for (int64_t position = visible.first; position < end; position++) slots.push_back(SlotOf(part.blocks, position));
  visible.slots = Upload(slots, device_);
  const bool by_token = pseudo == 1 || layer.mask == IhaMask::kTokenCausal;
  // A single token sees every key that the window let through, if pseudo tokens of one token see each other.
  const bool token_window = !layer.window.has_value() || layer.window->unit == WindowUnit::kToken || pseudo == 1;
  if (part.tokens == 1 && by_token && token_window) return visible;
  const int64_t size = layer.window.has_value() ? layer.window->size : 0;
  const bool window_cuts = size != 0 && size < end * (layer.window->unit == WindowUnit::kVirtual ? pseudo : int64_t{1});
  const bool plain = part.start == 0 && !window_cuts && (pseudo == 1 || layer.mask == IhaMask::kFlatCausal);
  if (plain && !explicit_mask) {
    visible.causal = true;
    return visible;
  }
  const at::Tensor query = Range(part.start * pseudo, end * pseudo).unsqueeze(1);
  const at::Tensor key = Range(visible.first * pseudo, end * pseudo).unsqueeze(0);
  const at::Tensor query_token = query.div(pseudo, "floor");
  const at::Tensor key_token = key.div(pseudo, "floor");
  visible.mask = layer.mask == IhaMask::kFlatCausal ? key.le(query) : key_token.le(query_token);
  if (layer.window.has_value()) {
    visible.mask = visible.mask.logical_and(layer.window->unit == WindowUnit::kToken ? key_token.gt(query_token - size)
                                                                                     : key.gt(query - size));
  }
  return visible;
}

const Visible& Step::VisibleTo(size_t part, const LayerSpec& layer, bool explicit_mask) {
  const auto window = layer.window.value_or(checkpoint::Window{});
  const auto [at, fresh] =
      visible_.try_emplace({part, explicit_mask, layer.pseudo_heads, static_cast<int>(layer.mask),
                            static_cast<int>(window.unit), layer.window.has_value() ? window.size : -1});
  if (fresh) at->second = MakeVisible(parts_[part], layer, explicit_mask);
  return at->second;
}

const Rotation& Step::RotationOf(const LayerSpec& layer) {
  const auto [at, fresh] =
      rotations_.try_emplace({layer.rope, layer.pseudo_heads, static_cast<int>(layer.rope_positions)});
  if (!fresh) return at->second;
  const checkpoint::RopeSpec& rope = config_.ropes[static_cast<size_t>(layer.rope)];
  const at::Tensor frequencies =
      at::tensor(checkpoint::InverseFrequencies(rope, config_.head_dim), at::kDouble).to(device_);
  at::Tensor positions = positions_.unsqueeze(1).expand({tokens_, layer.pseudo_heads});
  if (layer.rope_positions == IhaPositions::kVirtual) {
    positions = positions * layer.pseudo_heads + Range(0, layer.pseudo_heads);
  }
  const at::Tensor angles = positions.reshape({-1, 1, 1}).to(at::kDouble) * frequencies;
  at->second = {(angles.cos() * rope.attention_factor).to(at::kFloat),
                (angles.sin() * rope.attention_factor).to(at::kFloat)};
  return at->second;
}

void LayerCache::Reserve(int64_t blocks, const at::TensorOptions& options) {
  k_ = at::empty({blocks * kKvBlockTokens, k_width_}, options);
  v_ = at::empty({blocks * kKvBlockTokens, v_width_}, options);
}

void LayerCache::CopyBlock(int64_t from, int64_t to) {
  for (at::Tensor* side : {&k_, &v_}) {
    side->narrow(0, to * kKvBlockTokens, kKvBlockTokens).copy_(side->narrow(0, from * kKvBlockTokens, kKvBlockTokens));
  }
}

void LayerCache::Append(const at::Tensor& slots, const at::Tensor& k, const at::Tensor& v) {
  k_.index_copy_(0, slots, k.reshape({slots.size(0), k_width_}).to(k_.scalar_type()));
  v_.index_copy_(0, slots, v.reshape({slots.size(0), v_width_}).to(v_.scalar_type()));
}

std::pair<at::Tensor, at::Tensor> LayerCache::Gather(const at::Tensor& slots, at::ScalarType dtype) const {
  return {k_.index_select(0, slots).to(dtype), v_.index_select(0, slots).to(dtype)};
}

}  // namespace iha::model::torch
