#include "model/transformer/packing.h"

#include "common/status_macros.h"
#include "kernels/elementwise/elementwise.h"

namespace iha::model {

using checkpoint::DType;
using checkpoint::TensorView;
using kernels::StorageType;

StorageType StorageOf(DType dtype) {
  if (dtype == DType::kBF16) return StorageType::kBF16;
  if (dtype == DType::kF16) return StorageType::kF16;
  return StorageType::kF32;
}

absl::StatusOr<Linear> Packer::MakeLinear(std::span<const LinearPart> parts, int64_t columns) const {
  std::vector<TensorView> views;
  int64_t rows = 0;
  bool biased = false;
  for (const LinearPart& part : parts) {
    const int64_t shape[] = {part.rows, columns};
    IHA_ASSIGN_OR_RETURN(TensorView view, checkpoint_.ExpectTensor(part.name + ".weight", shape));
    views.push_back(std::move(view));
    rows += part.rows;
    biased = biased || part.bias;
  }
  bool same = true;
  for (const TensorView& view : views) same = same && view.dtype == views.front().dtype;
  const StorageType type = same ? StorageOf(views.front().dtype) : StorageType::kF32;

  Linear linear{kernels::PackedWeights(type, static_cast<size_t>(rows), static_cast<size_t>(columns)), {}};
  if (biased) linear.bias.assign(static_cast<size_t>(rows), 0.0f);
  size_t row = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    const size_t n = static_cast<size_t>(parts[i].rows);
    const size_t k = static_cast<size_t>(columns);
    std::vector<float> widened;
    const void* source = views[i].bytes.data();
    if (!same) {
      widened.resize(n * k);
      IHA_RETURN_IF_ERROR(checkpoint::WidenToF32(views[i], widened));
      source = widened.data();
    }
    const size_t row_bytes = k * kernels::StorageBytes(type);
    // Whole panels per job: rows of different panels may be packed in parallel.
    const size_t first_panel = row / kernels::kPanelRows;
    const size_t last_panel = (row + n + kernels::kPanelRows - 1) / kernels::kPanelRows;
    parallel_.Run(last_panel - first_panel, [&](size_t job, int) {
      const size_t begin = std::max(row, (first_panel + job) * kernels::kPanelRows);
      const size_t end = std::min(row + n, (first_panel + job + 1) * kernels::kPanelRows);
      linear.weights.PackRows(begin, static_cast<const std::byte*>(source) + (begin - row) * row_bytes, end - begin, k);
    });
    if (parts[i].bias) {
      IHA_ASSIGN_OR_RETURN(const std::vector<float> bias, Vector(parts[i].name + ".bias", parts[i].rows));
      std::copy(bias.begin(), bias.end(), linear.bias.begin() + static_cast<std::ptrdiff_t>(row));
    }
    checkpoint_.DropPages(views[i]);  // packed: the file's pages need not stay beside the copy
    row += n;
  }
  return linear;
}

absl::StatusOr<std::vector<float>> Packer::Tensor(const std::string& name, std::span<const int64_t> shape) const {
  IHA_ASSIGN_OR_RETURN(const TensorView view, checkpoint_.ExpectTensor(name, shape));
  std::vector<float> values(static_cast<size_t>(view.elements()));
  IHA_RETURN_IF_ERROR(checkpoint::WidenToF32(view, values));
  return values;
}

absl::StatusOr<std::vector<float>> Packer::Vector(const std::string& name, int64_t n) const {
  const int64_t shape[] = {n};
  return Tensor(name, shape);
}

void Apply(const Linear& linear, const float* x, size_t ldx, size_t rows, float* y, size_t ldy,
           kernels::ParallelFor& parallel) {
  kernels::Gemm(x, ldx, rows, linear.weights, y, ldy, parallel);
  if (linear.bias.empty()) return;
  kernels::AddInPlace({.rows = rows, .n = linear.weights.n(), .ld = ldy}, y, linear.bias.data(), 0, parallel);
}

}  // namespace iha::model
