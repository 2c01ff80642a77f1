// torch_step.h: one step's tokens as tensors, its rotations and masks, and the paged cache of one layer.
//
// Positions and slots are int64 on the device. A slot is block * 64 + position mod 64. "Virtual" tokens (iha) are
// n * P + j; every other kind has P = 1. Masks and rotations are made once a step and shared by the layers that need
// the same. Errors: Torch's exceptions.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/backend.h"
#include "model/checkpoint/config.h"

namespace iha::model::torch {

// The keys that the queries of one segment attend to.
struct Visible {
  at::Tensor slots;     // [keys] of the cache, positions `first` .. the segment's last
  int64_t first = 0;    // position
  bool causal = false;  // query i sees keys 0 .. i: the mask is left to the attention operation
  at::Tensor mask;      // bool [queries * P, keys * P], true = seen; undefined: causal, or all are seen
};

// cos and sin, fp32 [tokens * P, 1, d / 2].
struct Rotation {
  at::Tensor cos, sin;
};

class Step {
 public:
  Step(std::span<const Segment> segments, const checkpoint::ModelConfig& config, at::Device device);

  struct Part {
    int64_t first = 0;   // row of the step
    int64_t tokens = 0;  // rows
    int64_t start = 0;   // position of the first
    std::span<const int32_t> blocks;
  };
  const std::vector<Part>& parts() const { return parts_; }
  int64_t tokens() const { return tokens_; }
  const at::Tensor& ids() const { return ids_; }
  const at::Tensor& slots() const { return slots_; }
  const at::Tensor& logit_rows() const { return logit_rows_; }

  // explicit_mask: never leave the mask to the attention operation.
  const Visible& VisibleTo(size_t part, const checkpoint::LayerSpec& layer, bool explicit_mask);
  const Rotation& RotationOf(const checkpoint::LayerSpec& layer);

 private:
  Visible MakeVisible(const Part& part, const checkpoint::LayerSpec& layer, bool explicit_mask) const;
  at::Tensor Range(int64_t from, int64_t to) const;

  const checkpoint::ModelConfig& config_;
  const at::Device device_;
  std::vector<Part> parts_;
  int64_t tokens_ = 0;
  at::Tensor ids_, positions_, slots_, logit_rows_;
  // Keys: all that decides the value.
  std::map<std::tuple<size_t, bool, int64_t, int, int, int64_t>, Visible> visible_;
  std::map<std::tuple<int32_t, int64_t, int>, Rotation> rotations_;
};

// Keys and values of one layer: [blocks * 64, P * heads * width] each, in the cache's dtype.
class LayerCache {
 public:
  LayerCache(int64_t k_width, int64_t v_width) : k_width_(k_width), v_width_(v_width) {}
  int64_t width() const { return k_width_ + v_width_; }
  void Reserve(int64_t blocks, const at::TensorOptions& options);
  void CopyBlock(int64_t from, int64_t to);
  // k, v: anything whose first dimension is the tokens of the step.
  void Append(const at::Tensor& slots, const at::Tensor& k, const at::Tensor& v);
  std::pair<at::Tensor, at::Tensor> Gather(const at::Tensor& slots, at::ScalarType dtype) const;

 private:
  int64_t k_width_, v_width_;
  at::Tensor k_, v_;
};

}  // namespace iha::model::torch
