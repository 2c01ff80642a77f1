#include "model/device/device_weights.h"

#include "common/errors.h"
#include "common/status_macros.h"
#include "kernels/elementwise/elementwise_gpu.h"
#include "kernels/matmul/matmul_gpu.h"
#include "model/checkpoint/tensor.h"
#include "model/device/device_fast.h"

namespace iha::model {
namespace {

std::vector<uint16_t> Scatter(std::span<const float> values, const DeviceAxis& rows, const DeviceAxis& columns) {
  std::vector<uint16_t> padded(rows.padded() * columns.padded());  // bf16 0 is 0
  for (size_t r = 0; r < rows.stored(); r++) {
    for (size_t c = 0; c < columns.stored(); c++) {
      padded[rows.At(r) * columns.padded() + columns.At(c)] = checkpoint::F32ToBF16(values[r * columns.stored() + c]);
    }
  }
  return padded;
}

// Each d rows W_h become T^T W_h: the head's output, a row vector, times T.
std::vector<float> Knock(std::span<const float> values, size_t d, size_t columns, std::span<const float> knocking) {
  std::vector<float> knocked(values.size());
  for (size_t head = 0; head < values.size() / columns; head += d) {
    for (size_t n = 0; n < d; n++) {
      for (size_t c = 0; c < columns; c++) {
        double sum = 0;
        for (size_t m = 0; m < d; m++) {
          sum += static_cast<double>(knocking[m * d + n]) * static_cast<double>(values[(head + m) * columns + c]);
        }
        knocked[(head + n) * columns + c] = static_cast<float>(sum);
      }
    }
  }
  return knocked;
}

}  // namespace

DeviceAxis PlainAxis(int64_t n) {
  const auto size = static_cast<size_t>(n);
  return {.groups = 1, .from = size, .to = size, .order = DeviceAxis::Order::kAsStored};
}

size_t DeviceAxis::At(size_t i) const {
  const size_t within = i % from, half = within < from / 2 ? 0 : 1;
  size_t place = within;
  if (order == Order::kHalves) place = half * (to / 2) + within - half * (from / 2);
  if (order == Order::kPairs) place = within % 2 * (to / 2) + within / 2;
  return i / from * to + place;
}

absl::StatusOr<std::vector<float>> DeviceWeights::Read(const std::string& name, std::span<const int64_t> shape) const {
  IHA_ASSIGN_OR_RETURN(const checkpoint::TensorView view, checkpoint_.ExpectTensor(name, shape));
  std::vector<float> values(static_cast<size_t>(view.elements()));
  IHA_RETURN_IF_ERROR(checkpoint::WidenToF32(view, values));
  checkpoint_.DropPages(view);
  return values;
}

absl::StatusOr<DeviceLinear> DeviceWeights::Linear(const std::string& name, const DeviceAxis& rows,
                                                   const DeviceAxis& columns, bool bias,
                                                   std::span<const float> knocking) const {
  const int64_t shape[] = {static_cast<int64_t>(rows.stored()), static_cast<int64_t>(columns.stored())};
  IHA_ASSIGN_OR_RETURN(std::vector<float> values, Read(name + ".weight", shape));
  if (!knocking.empty()) values = Knock(values, rows.from, columns.stored(), knocking);
  IHA_ASSIGN_OR_RETURN(DeviceLinear linear, Linear(values, rows, columns));
  if (!bias) return linear;
  IHA_ASSIGN_OR_RETURN(std::vector<float> add, Read(name + ".bias", std::span(shape).first(1)));
  if (!knocking.empty()) add = Knock(add, rows.from, 1, knocking);
  const DeviceAxis one{.groups = 1, .from = 1, .to = 1, .order = DeviceAxis::Order::kAsStored};
  std::vector<uint16_t> padded(rows.padded());
  const std::vector<uint16_t> column = Scatter(add, rows, one);  // in rows of 8
  for (size_t i = 0; i < padded.size(); i++) padded[i] = column[i * one.padded()];
  IHA_ASSIGN_OR_RETURN(linear.bias, DeviceRows::Copy(runtime_, padded, "bias"));
  return linear;
}

absl::StatusOr<DeviceLinear> DeviceWeights::Linear(std::span<const float> values, const DeviceAxis& rows,
                                                   const DeviceAxis& columns) const {
  DeviceLinear linear;
  linear.n = static_cast<uint32_t>(rows.padded());
  linear.k = static_cast<uint32_t>(columns.padded());
  IHA_ASSIGN_OR_RETURN(linear.weights, DeviceRows::Copy(runtime_, Scatter(values, rows, columns), "weights"));
  return linear;
}

absl::StatusOr<DeviceRows> DeviceWeights::Vector(const std::string& name, const DeviceAxis& axis) const {
  const int64_t shape[] = {static_cast<int64_t>(axis.stored())};
  IHA_ASSIGN_OR_RETURN(const std::vector<float> values, Read(name, shape));
  std::vector<uint16_t> padded(axis.padded());
  for (size_t i = 0; i < values.size(); i++) padded[axis.At(i)] = checkpoint::F32ToBF16(values[i]);
  return DeviceRows::Copy(runtime_, padded, "vector");
}

namespace {

kernels::MatmulGpuArgs MatmulOf(const DeviceLinear& linear, const uint16_t* x, uint32_t rows) {
  return {.x = x,
          .w = linear.weights.data(),
          .m = rows,
          .n = linear.n,
          .k = linear.k,
          .ldx = linear.k,
          .ldw = linear.k,
          .ldy = linear.n};
}

absl::Status Multiply(DeviceRuntime& runtime, const kernels::MatmulGpuArgs& args) {
  if (DeviceFast* const fast = runtime.fast(); fast != nullptr && args.m > 0) {
    IHA_ASSIGN_OR_RETURN(const bool taken, fast->Matmul(args));
    if (taken) return absl::OkStatus();
  }
  return runtime.Check(kernels::MatmulGpu(args, runtime.stream()), "matmul");
}

}  // namespace

absl::Status ApplyLinear(DeviceRuntime& runtime, const DeviceLinear& linear, const uint16_t* x, uint32_t rows,
                         uint16_t* y) {
  kernels::MatmulGpuArgs args = MatmulOf(linear, x, rows);
  args.y = y;
  IHA_RETURN_IF_ERROR(Multiply(runtime, args));
  if (linear.bias.empty()) return absl::OkStatus();
  return runtime.Check(
      kernels::AddInPlaceGpu({.x = y, .y = linear.bias.data(), .rows = rows, .n = linear.n, .ldx = linear.n, .ldy = 0},
                             runtime.stream()),
      "bias");
}

absl::Status ApplyLinear(DeviceRuntime& runtime, const DeviceLinear& linear, const uint16_t* x, uint32_t rows,
                         float* y) {
  kernels::MatmulGpuArgs args = MatmulOf(linear, x, rows);
  args.y_float = y;
  return Multiply(runtime, args);
}

}  // namespace iha::model
