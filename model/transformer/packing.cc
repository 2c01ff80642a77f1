#include "model/transformer/packing.h"

#include "common/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "model/transformer/narrowing.h"

namespace iha::model {

using checkpoint::TensorView;
using kernels::StorageType;

// Rows `row` and following of `weights` from a whole tensor. Panels are the jobs: rows of different ones may be packed
// in parallel.
void Packer::PackPart(const TensorView& view, size_t row, kernels::PackedWeights* weights) const {
  const size_t n = static_cast<size_t>(view.shape[0]), k = weights->k();
  const StorageType type = weights->type();
  const size_t first_panel = row / kernels::kPanelRows;
  const size_t last_panel = (row + n + kernels::kPanelRows - 1) / kernels::kPanelRows;
  std::vector<std::vector<std::byte>> converted(static_cast<size_t>(parallel_.Threads()));
  parallel_.Run(last_panel - first_panel, [&](size_t job, int thread) {
    const size_t begin = std::max(row, (first_panel + job) * kernels::kPanelRows) - row;
    const size_t end = std::min(row + n, (first_panel + job + 1) * kernels::kPanelRows) - row;
    const std::byte* source = view.bytes.data() + begin * k * static_cast<size_t>(checkpoint::SizeOf(view.dtype));
    if (StorageOf(view.dtype) != type) {
      std::vector<std::byte>& rows = converted[static_cast<size_t>(thread)];
      rows.resize((end - begin) * k * kernels::StorageBytes(type));
      StoreExactly(view, begin * k, (end - begin) * k, type, rows.data());
      source = rows.data();
    }
    weights->PackRows(row + begin, source, end - begin, k);
  });
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
  const StorageType type = ExactStorage(views, parallel_);

  Linear linear{kernels::PackedWeights(type, static_cast<size_t>(rows), static_cast<size_t>(columns)), {}};
  if (biased) linear.bias.assign(static_cast<size_t>(rows), 0.0f);
  size_t row = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    PackPart(views[i], row, &linear.weights);
    if (parts[i].bias) {
      IHA_ASSIGN_OR_RETURN(const std::vector<float> bias, Vector(parts[i].name + ".bias", parts[i].rows));
      std::copy(bias.begin(), bias.end(), linear.bias.begin() + static_cast<std::ptrdiff_t>(row));
    }
    checkpoint_.DropPages(views[i]);  // packed: the file's pages need not stay beside the copy
    row += static_cast<size_t>(parts[i].rows);
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

OpWork WorkOf(const Linear& linear, size_t rows) {
  const kernels::PackedWeights& w = linear.weights;
  return {.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(w.n()) * static_cast<double>(w.k()),
          .bytes = static_cast<double>(w.bytes())};
}

void Apply(const Linear& linear, const float* x, size_t ldx, size_t rows, float* y, size_t ldy,
           kernels::ParallelFor& parallel) {
  kernels::Gemm(x, ldx, rows, linear.weights, y, ldy, parallel);
  if (linear.bias.empty()) return;
  kernels::AddInPlace({.rows = rows, .n = linear.weights.n(), .ld = ldy}, y, linear.bias.data(), 0, parallel);
}

}  // namespace iha::model
