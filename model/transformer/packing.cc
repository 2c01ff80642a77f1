#include "model/transformer/packing.h"

#include <algorithm>
#include <atomic>

#include "common/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "model/transformer/narrowing.h"

namespace iha::model {

using checkpoint::TensorView;
using kernels::StorageType;
using kernels::WeightForm;

namespace {

// Whether the first rows have an affine form: a tensor that has none is seen before anything is set aside for it.
bool BeginsAffine(const TensorView& view, size_t k) {
  const size_t rows = std::min<size_t>(static_cast<size_t>(view.shape[0]), kernels::kPanelRows);
  std::vector<float> values(rows * k);
  StoreExactly(view, 0, values.size(), StorageType::kF32, reinterpret_cast<std::byte*>(values.data()));
  kernels::PackedWeights packed(WeightForm::kAffine, rows, k);
  return packed.PackAffineRows(0, values.data(), rows, k);
}

}  // namespace

// Rows `row` and following of `weights` from a whole tensor. Panels are the jobs: rows of different ones may be packed
// in parallel. False: its values have no affine form, which was asked for.
bool Packer::PackPart(const TensorView& view, StorageType type, size_t row, kernels::PackedWeights* weights) const {
  const size_t n = static_cast<size_t>(view.shape[0]), k = weights->k();
  const bool affine = weights->form() == WeightForm::kAffine;
  std::atomic<bool> fits = true;
  const size_t first_panel = row / kernels::kPanelRows;
  const size_t last_panel = (row + n + kernels::kPanelRows - 1) / kernels::kPanelRows;
  std::vector<std::vector<std::byte>> converted(static_cast<size_t>(parallel_.Threads()));
  parallel_.Run(last_panel - first_panel, [&](size_t job, int thread) {
    if (!fits.load(std::memory_order_relaxed)) return;
    const size_t begin = std::max(row, (first_panel + job) * kernels::kPanelRows) - row;
    const size_t end = std::min(row + n, (first_panel + job + 1) * kernels::kPanelRows) - row;
    const std::byte* source = view.bytes.data() + begin * k * static_cast<size_t>(checkpoint::SizeOf(view.dtype));
    if (StorageOf(view.dtype) != type) {
      std::vector<std::byte>& rows = converted[static_cast<size_t>(thread)];
      rows.resize((end - begin) * k * kernels::StorageBytes(type));
      StoreExactly(view, begin * k, (end - begin) * k, type, rows.data());
      source = rows.data();
    }
    if (!affine) {
      weights->PackRows(row + begin, source, end - begin, k);
    } else if (!weights->PackAffineRows(row + begin, source, end - begin, k)) {
      fits.store(false, std::memory_order_relaxed);
    }
  });
  return fits;
}

// Each part's pages of the file are dropped as it is packed, unless the parts may have to be read again.
std::optional<kernels::PackedWeights> Packer::PackAs(WeightForm form, std::span<const TensorView> views,
                                                     size_t columns) const {
  size_t rows = 0;
  for (const TensorView& view : views) rows += static_cast<size_t>(view.shape[0]);
  const StorageType type = form == WeightForm::kBF16  ? StorageType::kBF16
                           : form == WeightForm::kF16 ? StorageType::kF16
                                                      : StorageType::kF32;
  const auto drop = [&](const TensorView& view) { checkpoint_.DropPages(view); };
  kernels::PackedWeights weights(form, rows, columns, arena_.get());
  size_t row = 0;
  for (const TensorView& view : views) {
    if (!PackPart(view, type, row, &weights)) return std::nullopt;
    if (form != WeightForm::kAffine) drop(view);
    row += static_cast<size_t>(view.shape[0]);
  }
  if (form == WeightForm::kAffine) std::for_each(views.begin(), views.end(), drop);
  return weights;
}

kernels::PackedWeights Packer::PackExactly(std::span<const TensorView> views, size_t columns) const {
  const StorageType type = ExactStorage(views, parallel_);
  const auto begins_affine = [&](const TensorView& view) { return BeginsAffine(view, columns); };
  if (type == StorageType::kF32 && std::all_of(views.begin(), views.end(), begins_affine)) {
    if (auto affine = PackAs(WeightForm::kAffine, views, columns)) return *std::move(affine);
  }
  return *PackAs(kernels::FormOf(type), views, columns);
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
  Linear linear{PackExactly(views, static_cast<size_t>(columns)), {}};
  if (biased) linear.bias.assign(static_cast<size_t>(rows), 0.0f);
  size_t row = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    if (parts[i].bias) {
      IHA_ASSIGN_OR_RETURN(const std::vector<float> bias, Vector(parts[i].name + ".bias", parts[i].rows));
      std::copy(bias.begin(), bias.end(), linear.bias.begin() + static_cast<std::ptrdiff_t>(row));
    }
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

OpWork WorkOf(const kernels::PackedWeights& weights, size_t rows) {
  return {
      .flops = 2.0 * static_cast<double>(rows) * static_cast<double>(weights.n()) * static_cast<double>(weights.k()),
      .bytes = static_cast<double>(weights.bytes())};
}

void Apply(const Linear& linear, const float* x, size_t ldx, size_t rows, float* y, size_t ldy,
           kernels::ParallelFor& parallel) {
  kernels::Gemm(x, ldx, rows, linear.weights, y, ldy, parallel);
  if (linear.bias.empty()) return;
  kernels::AddInPlace({.rows = rows, .n = linear.weights.n(), .ld = ldy}, y, linear.bias.data(), 0, parallel);
}

}  // namespace iha::model
