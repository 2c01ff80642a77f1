// torch_weights.h: a checkpoint's tensors on a device.
//
// Open has checked names, shapes and dtypes, so a missing tensor is our bug and throws. All of model/torch/ lets
// Torch's exceptions fly; torch_backend.cc is the one place that catches them.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "model/checkpoint/checkpoint.h"

namespace iha::model::torch {

class Weights {
 public:
  // Matrices are kept as `dtype`.
  Weights(const checkpoint::Checkpoint& checkpoint, at::Device device, at::ScalarType dtype)
      : checkpoint_(checkpoint), device_(device), dtype_(dtype) {}

  const checkpoint::ModelConfig& config() const { return checkpoint_.config(); }
  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

  at::Tensor Get(const std::string& name) const { return Stored(name).to(device_, dtype_); }
  // fp32 whatever the dtype of the matrices: norms, lambdas.
  at::Tensor GetFloat(const std::string& name) const { return Stored(name).to(device_, at::kFloat); }
  // Undefined when the config says there is none.
  at::Tensor GetIf(bool present, const std::string& name) const { return present ? Get(name) : at::Tensor(); }

 private:
  at::Tensor Stored(const std::string& name) const;

  const checkpoint::Checkpoint& checkpoint_;
  const at::Device device_;
  const at::ScalarType dtype_;
};

// y = x W^T + b.
struct LinearLayer {
  at::Tensor weight, bias;  // bias may be undefined

  static LinearLayer Read(const Weights& weights, const std::string& name, bool bias) {
    return {weights.Get(name + ".weight"), weights.GetIf(bias, name + ".bias")};
  }
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
};

// Over the last dimension, in fp32; the result has x's dtype.
struct Norm {
  at::Tensor weight;  // 1 + w already added where the family stores w
  double eps = 0;

  static Norm Read(const Weights& weights, const std::string& name) {
    const checkpoint::ModelConfig& config = weights.config();
    const at::Tensor stored = weights.GetFloat(name + ".weight");
    return {config.norm_plus_one ? stored + 1 : stored, config.rms_norm_eps};
  }
  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor f = x.to(at::kFloat);
    return (f * at::rsqrt(f.square().mean({-1}, true) + eps) * weight).to(x.scalar_type());
  }
};

}  // namespace iha::model::torch
