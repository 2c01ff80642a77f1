// device_step.h: one step's tokens on a device: ids, positions, block tables, rotations; and the pages of one layer.
//
// Virtual tokens (iha) are n P + j; every other kind has P = 1. A block of 64 tokens is P pages of 64 virtual tokens:
// page = block P + part. What layers with equal P share is made once a step. Thread: the backend's. Errors: the
// runtime's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention/kv_pages_gpu.h"
#include "model/backend.h"
#include "model/checkpoint/config.h"
#include "model/device/device_runtime.h"

namespace iha::model {

// Rows of all segments with tokens, P a token, and where their keys are, as the attention kernels take them.
struct DevicePlaces {
  uint32_t rows = 0;
  uint32_t sequences = 0;
  uint32_t max_rows = 0;  // of one sequence
  uint32_t max_keys = 0;  // the same
  uint32_t pages_per_sequence = 0;
  DeviceArray<uint32_t> positions;     // [rows], virtual
  DeviceArray<uint32_t> row_sequence;  // [rows]
  DeviceArray<uint32_t> q_begin;       // [sequences + 1]
  DeviceArray<uint32_t> kv_length;     // [sequences]
  DeviceArray<int32_t> page_table;     // [sequences][pages_per_sequence]
};

class DeviceStep {
 public:
  // The segments must outlive the step.
  static absl::StatusOr<DeviceStep> Make(DeviceRuntime& runtime, std::span<const Segment> segments);

  uint32_t tokens() const { return static_cast<uint32_t>(positions_.size()); }
  uint32_t last_position() const { return last_position_; }
  const DeviceArray<int32_t>& ids() const { return ids_; }
  const DeviceArray<int32_t>& logit_rows() const { return logit_rows_; }  // indices into the step's tokens
  absl::StatusOr<const DevicePlaces*> PlacesOf(uint32_t pseudo);
  // Of each token n: n factor.
  absl::StatusOr<const uint32_t*> TokenRows(uint32_t factor);

 private:
  explicit DeviceStep(DeviceRuntime& runtime) : runtime_(&runtime) {}

  DeviceRuntime* runtime_;
  std::vector<Segment> segments_;  // those with tokens
  std::vector<uint32_t> positions_;
  uint32_t last_position_ = 0;
  DeviceArray<int32_t> ids_, logit_rows_;
  std::map<uint32_t, DevicePlaces> places_;
  std::map<uint32_t, DeviceArray<uint32_t>> token_rows_;
};

// cos and sin of each rotary embedding, rows of `half` values of which those past head_dim / 2 turn nothing. Rows are
// filled once, so a row's bits do not depend on when it was first asked for (NUM-5).
class DeviceRopes {
 public:
  DeviceRopes(DeviceRuntime& runtime, const checkpoint::ModelConfig& config, uint32_t half);

  // Afterwards rows 0 .. row of every table are there.
  absl::Status Extend(uint32_t row);
  const float* cos(int32_t rope) const { return tables_[static_cast<size_t>(rope)].cos.data(); }
  const float* sin(int32_t rope) const { return tables_[static_cast<size_t>(rope)].sin.data(); }
  std::span<const double> frequency(int32_t rope) const { return tables_[static_cast<size_t>(rope)].frequency; }

 private:
  struct Table {
    std::vector<double> frequency;  // [half]
    double factor = 1.0;
    DeviceArray<float> cos, sin;
  };
  DeviceRuntime& runtime_;
  size_t rows_ = 0;
  std::vector<Table> tables_;
};

// The cache of one layer: `pseudo` pages a block.
class DeviceKv {
 public:
  DeviceKv(uint32_t heads, uint32_t d, uint32_t d_v, uint32_t pseudo)
      : heads_(heads), d_(d), d_v_(d_v), pseudo_(pseudo) {}

  int64_t block_bytes() const { return int64_t{kKvBlockTokens} * pseudo_ * heads_ * (d_ + d_v_) * 2; }
  const kernels::KvPagesGpu& pages() const { return pages_; }
  absl::Status Reserve(DeviceRuntime& runtime, int32_t blocks);
  absl::Status CopyBlock(DeviceRuntime& runtime, int32_t from, int32_t to) const;
  // k: [rows][heads][d], v: [rows][heads][d_v] of the step.
  absl::Status Append(DeviceRuntime& runtime, const DevicePlaces& places, const uint16_t* k, const uint16_t* v) const;

 private:
  uint32_t heads_, d_, d_v_, pseudo_;
  DeviceRows k_, v_;
  kernels::KvPagesGpu pages_;
};

}  // namespace iha::model
