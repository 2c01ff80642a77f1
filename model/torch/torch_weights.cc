#include "model/torch/torch_weights.h"

#include <cstring>
#include <stdexcept>

namespace iha::model::torch {
namespace {

at::ScalarType TypeOf(checkpoint::DType dtype) {
  switch (dtype) {
    case checkpoint::DType::kF32:
      return at::kFloat;
    case checkpoint::DType::kF16:
      return at::kHalf;
    case checkpoint::DType::kBF16:
      return at::kBFloat16;
    default:
      throw std::logic_error(std::string("a weight of type ") + checkpoint::NameOf(dtype));
  }
}

}  // namespace

at::Tensor Weights::Stored(const std::string& name) const {
  const auto view = checkpoint_.Tensor(name);
  if (!view.ok()) throw std::logic_error(std::string(view.status().message()));
  // Copied: files decide the alignment, and the mapping may go away.
  at::Tensor tensor = at::empty(view->shape, TypeOf(view->dtype));
  std::memcpy(tensor.data_ptr(), view->bytes.data(), view->bytes.size());
  return tensor;
}

}  // namespace iha::model::torch
