// device_weights.h: a checkpoint's tensors in the shapes that the kernels take: bf16, dimensions padded with zeros.
//
// A dimension of heads is padded head by head to a size that has a kernel. Query and key heads are also put in an order
// in which every RoPE turns element i with i + to / 2 (half pairing moves its halves apart, interleaved its even and
// odd elements): scores do not depend on an order that both have. Every other dimension is padded to a multiple of 8.
// Zeros stay zeros through projections, norms (which take the mean over true values), rotations, mixes and collapses.
// Thread: the backend's. Errors: those of Checkpoint::ExpectTensor, and the runtime's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/checkpoint.h"
#include "model/device/device_runtime.h"
#include "model/op_profile.h"

namespace iha::model {

// How a stored dimension of `groups` times `from` values becomes groups times `to`.
struct DeviceAxis {
  enum class Order { kAsStored, kHalves, kPairs };  // kPairs: even elements, then odd ones
  size_t groups = 1;
  size_t from = 0;
  size_t to = 0;
  Order order = Order::kAsStored;

  [[nodiscard]] size_t stored() const { return groups * from; }
  [[nodiscard]] size_t padded() const { return (groups * to + 7) / 8 * 8; }
  // Where stored index i goes.
  [[nodiscard]] size_t At(size_t i) const;
};
// One group, padded to a multiple of 8 only.
DeviceAxis PlainAxis(int64_t n);

// y = x W^T + b.
struct DeviceLinear {
  DeviceRows weights;  // [n][k]
  DeviceRows bias;     // [n], or empty
  uint32_t n = 0;
  uint32_t k = 0;
};

// y = x W^T of so many rows, padded as the device has it.
inline OpWork WorkOf(const DeviceLinear& linear, uint32_t rows) {
  const double weights = static_cast<double>(linear.n) * linear.k;
  return {.flops = 2.0 * rows * weights, .bytes = 2 * weights};
}

class DeviceWeights {
 public:
  DeviceWeights(const checkpoint::Checkpoint& checkpoint, DeviceRuntime& runtime)
      : checkpoint_(checkpoint), runtime_(runtime) {}

  DeviceRuntime& runtime() const { return runtime_; }
  // Tensor `name` of this shape as fp32, as stored.
  absl::StatusOr<std::vector<float>> Read(const std::string& name, std::span<const int64_t> shape) const;
  // NAME.weight, and NAME.bias if there is one. knocking: [d][d] or empty; each d rows of the weights (a head) and of
  // the bias become (rows)^T T.
  absl::StatusOr<DeviceLinear> Linear(const std::string& name, const DeviceAxis& rows, const DeviceAxis& columns,
                                      bool bias, std::span<const float> knocking = {}) const;
  // A matrix of [rows][columns] that has been read.
  absl::StatusOr<DeviceLinear> Linear(std::span<const float> values, const DeviceAxis& rows,
                                      const DeviceAxis& columns) const;
  // NAME, of one dimension.
  absl::StatusOr<DeviceRows> Vector(const std::string& name, const DeviceAxis& axis) const;

 private:
  const checkpoint::Checkpoint& checkpoint_;
  DeviceRuntime& runtime_;
};

// y [rows][n] = x [rows][k] W^T + b, rounded to bf16 before the bias and after it.
absl::Status ApplyLinear(DeviceRuntime& runtime, const DeviceLinear& linear, const uint16_t* x, uint32_t rows,
                         uint16_t* y);
// The same to fp32, for layers without a bias.
absl::Status ApplyLinear(DeviceRuntime& runtime, const DeviceLinear& linear, const uint16_t* x, uint32_t rows,
                         float* y);

}  // namespace iha::model
