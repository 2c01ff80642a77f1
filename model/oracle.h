// oracle.h: checkpoints that come with the values that a correct engine gives (expected.safetensors).
//
// Format: `input_ids` I64 [N], `logits` F64 [N, V] (row n = after token n), `attn_out.{l}` F64 [N, D] = output of
// o_proj of layer l, before the residual sum; metadata `logit_atol` and `attn_out_atol`, the largest differences that a
// correct fp32 engine may show. Blocking; thread: any. Errors: InvalidArgument, NotFound, DataLoss; file and tensor
// named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/backend.h"
#include "model/open_model.h"

namespace iha::model {

struct Oracle {
  std::vector<int32_t> ids;
  std::vector<double> logits;                 // [N, V]
  std::vector<std::vector<double>> attn_out;  // [layer][N, D]
  double logit_atol = 0;
  double attn_out_atol = 0;
};
// Every attn_out.{l} that is there, from l = 0 on.
absl::StatusOr<Oracle> ReadOracle(const std::string& path);

// NaN on either side gives NaN; other sizes give infinity.
double MaxAbsError(std::span<const float> found, std::span<const double> expected);

struct OracleErrors {
  double logits = 0;
  std::vector<double> attn_out;  // one a layer
  // The oracle's tolerances; for numerics in bf16, where they are larger, the bounds of model/device/bf16_bound.h.
  double logit_atol = 0;
  std::vector<double> attn_out_atol;  // one a layer
  bool ok() const;                    // logits and every attn_out within tolerance
};
// Opens FOLDER and runs FOLDER/expected.safetensors' ids through it, `chunk` tokens a step (0 = whole).
absl::StatusOr<OracleErrors> CheckOracle(const std::string& folder, const OpenOptions& options, size_t chunk);

}  // namespace iha::model
