// device_step.h: one step's tokens on a device: ids, positions, page tables, rotations.
//
// Virtual tokens (iha) are n P + j; every other kind has P = 1. What layers of one group with equal P share is made
// once a step. Thread: the backend's. Errors: the runtime's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/backend.h"
#include "model/checkpoint/config.h"
#include "model/device/device_cache.h"
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
  // Known to the host alone: where each sequence's rows begin (and the last one's end), and whether all of them begin
  // at position 0, so that the step's own keys are all that there are.
  std::vector<uint32_t> row_begin;
  bool whole = false;
};

class DeviceStep {
 public:
  // What the segments refer to must stay until the last use of the step, or its next Refill; the cache longer.
  // table_blocks: room in every page table for so many blocks (then max_keys is what they hold), 0: as many as there
  // are.
  static absl::StatusOr<DeviceStep> Make(DeviceRuntime& runtime, const DeviceCache& cache,
                                         std::span<const Segment> segments, uint32_t table_blocks = 0);
  // Of a step with table_blocks: other segments with as many tokens and wanted rows each, at the same addresses.
  absl::Status Refill(std::span<const Segment> segments);

  uint32_t tokens() const { return static_cast<uint32_t>(positions_.size()); }
  uint32_t last_position() const { return last_position_; }
  std::span<const Segment> segments() const { return segments_; }  // those with tokens
  const DeviceArray<int32_t>& ids() const { return ids_; }
  const DeviceArray<int32_t>& logit_rows() const { return logit_rows_; }  // indices into the step's tokens
  absl::StatusOr<const DevicePlaces*> PlacesOf(uint32_t pseudo, size_t group);
  // Of each token n: n factor.
  absl::StatusOr<const uint32_t*> TokenRows(uint32_t factor);

 private:
  DeviceStep(DeviceRuntime& runtime, const DeviceCache& cache, uint32_t table_blocks)
      : runtime_(&runtime), cache_(&cache), table_blocks_(table_blocks) {}
  absl::Status FillPlaces(uint32_t pseudo, size_t group, DevicePlaces& places) const;
  absl::Status FillTokenRows(uint32_t factor, DeviceArray<uint32_t>& rows) const;
  // Makes the array, or writes over it.
  template <class T>
  absl::Status Put(DeviceArray<T>& array, const std::vector<T>& values, const char* name) const;

  DeviceRuntime* runtime_;
  const DeviceCache* cache_;
  uint32_t table_blocks_;
  std::vector<Segment> segments_;  // those with tokens
  std::vector<uint32_t> positions_;
  uint32_t last_position_ = 0;
  DeviceArray<int32_t> ids_, logit_rows_;
  std::map<std::pair<uint32_t, size_t>, DevicePlaces> places_;
  std::map<uint32_t, DeviceArray<uint32_t>> token_rows_;
};

// cos and sin of each rotary embedding, rows of `half` values of which those past head_dim / 2 turn nothing. A table
// that grows is filled anew; a row's values depend on its number alone, so its bits are the same each time (NUM-5).
class DeviceRopes {
 public:
  DeviceRopes(DeviceRuntime& runtime, const checkpoint::ModelConfig& config, uint32_t half);

  // Afterwards rows 0 .. row of every table are there.
  absl::Status Extend(uint32_t row);
  const float* cos(int32_t rope) const { return tables_[static_cast<size_t>(rope)].cos.data(); }
  const float* sin(int32_t rope) const { return tables_[static_cast<size_t>(rope)].sin.data(); }
  // How often the tables have taken new places.
  int64_t moves() const { return moves_; }

 private:
  struct Table {
    std::vector<double> frequency;  // [half]
    double factor = 1.0;
    DeviceArray<float> cos, sin;
  };
  DeviceRuntime& runtime_;
  size_t rows_ = 0;
  int64_t moves_ = 0;
  std::vector<Table> tables_;
};

}  // namespace iha::model
