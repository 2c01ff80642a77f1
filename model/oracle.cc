#include "model/oracle.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/safetensors.h"
#include "model/device/bf16_bound.h"
#include "model/sequence_run.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::DType;
using checkpoint::Safetensors;
using checkpoint::TensorView;

// Values of a tensor of `rows` rows (any number when 0).
template <class T>
absl::StatusOr<std::vector<T>> Read(const Safetensors& file, const std::string& name, DType dtype, size_t dimensions,
                                    int64_t rows) {
  const TensorView* view = file.Find(name);
  if (view == nullptr) return InvalidArgument("{}: tensor {}: missing", file.path(), name);
  const bool fits = view->dtype == dtype && view->shape.size() == dimensions && (rows == 0 || view->shape[0] == rows);
  if (!fits) {
    return InvalidArgument("{}: tensor {}: found {} {}; expected {} with {} dimensions, one row an input id",
                           file.path(), name, NameOf(view->dtype), checkpoint::ShapeText(view->shape), NameOf(dtype),
                           dimensions);
  }
  std::vector<T> values(static_cast<size_t>(view->elements()));
  if (!values.empty()) std::memcpy(values.data(), view->bytes.data(), view->bytes.size());
  return values;
}

absl::Status ReadTolerance(const Safetensors& file, const std::string& key, double& value) {
  const auto at = file.metadata().find(key);
  if (at == file.metadata().end()) return InvalidArgument("{}: metadata {}: missing", file.path(), key);
  const std::string& text = at->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && std::isfinite(value)) {
    return absl::OkStatus();
  }
  return InvalidArgument("{}: metadata {}: found \"{}\"; expected a number of at least 0", file.path(), key, text);
}

void WidenTolerances(const Bf16Errors& bf16, const Oracle& oracle, OracleErrors& errors) {
  errors.logit_atol = std::max(errors.logit_atol, Bf16Bound(bf16.logits, oracle.logits));
  for (size_t layer = 0; layer < errors.attn_out_atol.size(); layer++) {
    double& atol = errors.attn_out_atol[layer];
    atol = std::max(atol, Bf16Bound(bf16.attn_out[layer], oracle.attn_out[layer]));
  }
}

}  // namespace

absl::StatusOr<Oracle> ReadOracle(const std::string& path) {
  IHA_ASSIGN_OR_RETURN(const Safetensors file, Safetensors::Open(path));
  Oracle oracle;
  IHA_ASSIGN_OR_RETURN(const auto ids, Read<int64_t>(file, "input_ids", DType::kI64, 1, 0));
  if (ids.empty()) return InvalidArgument("{}: tensor input_ids: empty; expected at least one id", path);
  for (const int64_t id : ids) {
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("{}: tensor input_ids: found {}; expected token ids", path, id);
    }
    oracle.ids.push_back(static_cast<int32_t>(id));
  }
  const int64_t rows = static_cast<int64_t>(ids.size());
  IHA_ASSIGN_OR_RETURN(oracle.logits, Read<double>(file, "logits", DType::kF64, 2, rows));
  for (std::string name = "attn_out.0"; file.Find(name) != nullptr;
       name = fmt::format("attn_out.{}", oracle.attn_out.size())) {
    IHA_ASSIGN_OR_RETURN(auto layer, Read<double>(file, name, DType::kF64, 2, rows));
    oracle.attn_out.push_back(std::move(layer));
  }
  const auto is_layer = [](const auto& tensor) { return tensor.first.starts_with("attn_out."); };
  const auto layers = static_cast<size_t>(std::count_if(file.tensors().begin(), file.tensors().end(), is_layer));
  if (layers != oracle.attn_out.size()) {  // one that stands apart would not be compared
    return InvalidArgument("{}: {} attn_out tensors; expected attn_out.0, attn_out.1 and so on without a gap, found {}",
                           path, layers, oracle.attn_out.size());
  }
  IHA_RETURN_IF_ERROR(ReadTolerance(file, "logit_atol", oracle.logit_atol));
  IHA_RETURN_IF_ERROR(ReadTolerance(file, "attn_out_atol", oracle.attn_out_atol));
  return oracle;
}

double MaxAbsError(std::span<const float> found, std::span<const double> expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < found.size(); i++) {
    const double error = std::abs(static_cast<double>(found[i]) - expected[i]);
    if (std::isnan(error)) return error;
    worst = std::max(worst, error);
  }
  return worst;
}

bool OracleErrors::ok() const {
  return logits <= logit_atol &&
         std::equal(attn_out.begin(), attn_out.end(), attn_out_atol.begin(), attn_out_atol.end(),
                    [](double error, double atol) { return error <= atol; });
}

absl::StatusOr<OracleErrors> CheckOracle(const std::string& folder, const OpenOptions& options, size_t chunk) {
  IHA_ASSIGN_OR_RETURN(const OpenedBackend opened, OpenBackend(folder, options));
  IHA_ASSIGN_OR_RETURN(const Oracle oracle, ReadOracle(folder + "/expected.safetensors"));
  const std::vector<std::vector<int32_t>> sequences = {oracle.ids};
  IHA_RETURN_IF_ERROR(Annotate(opened.backend->ReserveCache(BlocksFor(opened.backend->info(), sequences)), folder));
  std::vector<float> logits;
  const LogitSink keep = [&logits](size_t, std::span<const float> rows) {
    logits.insert(logits.end(), rows.begin(), rows.end());
    return absl::OkStatus();
  };
  Trace trace;
  IHA_RETURN_IF_ERROR(Annotate(RunSequences(*opened.backend, sequences, chunk, keep, &trace), folder));
  if (trace.attn_out.size() != oracle.attn_out.size()) {
    return InvalidArgument("{}/expected.safetensors: {} attn_out tensors; the checkpoint has {} layers", folder,
                           oracle.attn_out.size(), trace.attn_out.size());
  }
  OracleErrors errors{.logits = MaxAbsError(logits, oracle.logits),
                      .attn_out = {},
                      .logit_atol = oracle.logit_atol,
                      .attn_out_atol = std::vector<double>(trace.attn_out.size(), oracle.attn_out_atol)};
  for (size_t layer = 0; layer < trace.attn_out.size(); layer++) {
    errors.attn_out.push_back(MaxAbsError(trace.attn_out[layer], oracle.attn_out[layer]));
  }
  if (options.numerics.on_device()) {
    IHA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
    IHA_ASSIGN_OR_RETURN(const std::vector<double> variances, ScoreVariances(checkpoint));
    WidenTolerances(Bf16ErrorsOf(checkpoint.config(), variances), oracle, errors);
  }
  return errors;
}

}  // namespace iha::model
