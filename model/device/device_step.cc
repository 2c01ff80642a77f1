#include "model/device/device_step.h"

#include <algorithm>

#include "common/status_macros.h"
#include "kernels/rope/rope.h"
#include "model/checkpoint/rope.h"

namespace iha::model {

absl::StatusOr<DeviceStep> DeviceStep::Make(DeviceRuntime& runtime, const DeviceCache& cache,
                                            std::span<const Segment> segments) {
  DeviceStep self(runtime, cache);
  std::vector<int32_t> ids, logit_rows;
  for (const Segment& segment : segments) {
    if (segment.tokens.empty()) continue;
    for (const int32_t row : segment.logit_rows) logit_rows.push_back(static_cast<int32_t>(ids.size()) + row);
    ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
    for (size_t i = 0; i < segment.tokens.size(); i++) {
      self.positions_.push_back(static_cast<uint32_t>(segment.start) + static_cast<uint32_t>(i));
    }
    self.last_position_ = std::max(self.last_position_, self.positions_.back());
    self.segments_.push_back(segment);
  }
  IHA_ASSIGN_OR_RETURN(self.ids_, DeviceArray<int32_t>::Copy(runtime, ids, "ids"));
  IHA_ASSIGN_OR_RETURN(self.logit_rows_, DeviceArray<int32_t>::Copy(runtime, logit_rows, "logit rows"));
  return self;
}

absl::StatusOr<const DevicePlaces*> DeviceStep::PlacesOf(uint32_t pseudo, size_t group) {
  const auto [at, fresh] = places_.try_emplace({pseudo, group});
  DevicePlaces& places = at->second;
  if (!fresh) return &places;
  const size_t groups = cache_->windows().size();
  size_t blocks = 0;
  for (const Segment& segment : segments_) blocks = std::max(blocks, TableOf(segment, group, groups).size());
  places.sequences = static_cast<uint32_t>(segments_.size());
  places.pages_per_sequence = static_cast<uint32_t>(blocks) * pseudo;
  std::vector<uint32_t> positions, row_sequence, q_begin = {0}, kv_length;
  std::vector<int32_t> table(size_t{places.sequences} * places.pages_per_sequence, kNoKvBlock);
  for (uint32_t s = 0; s < places.sequences; s++) {
    const Segment& segment = segments_[s];
    const auto start = static_cast<uint32_t>(segment.start), count = static_cast<uint32_t>(segment.tokens.size());
    for (uint32_t position = start * pseudo; position < (start + count) * pseudo; position++) {
      positions.push_back(position);
      row_sequence.push_back(s);
    }
    q_begin.push_back(static_cast<uint32_t>(positions.size()));
    kv_length.push_back((start + count) * pseudo);
    places.max_rows = std::max(places.max_rows, count * pseudo);
    places.max_keys = std::max(places.max_keys, kv_length.back());
    int32_t* page = table.data() + size_t{s} * places.pages_per_sequence;
    for (const int32_t block : TableOf(segment, group, groups)) {
      const int32_t first = block * static_cast<int32_t>(cache_->pages_per_block());
      for (uint32_t part = 0; part < pseudo; part++) {
        *page++ = block == kNoKvBlock ? kNoKvBlock : first + static_cast<int32_t>(part);
      }
    }
  }
  places.rows = static_cast<uint32_t>(positions.size());
  IHA_ASSIGN_OR_RETURN(places.positions, DeviceArray<uint32_t>::Copy(*runtime_, positions, "positions"));
  IHA_ASSIGN_OR_RETURN(places.row_sequence, DeviceArray<uint32_t>::Copy(*runtime_, row_sequence, "row sequence"));
  IHA_ASSIGN_OR_RETURN(places.q_begin, DeviceArray<uint32_t>::Copy(*runtime_, q_begin, "q begin"));
  IHA_ASSIGN_OR_RETURN(places.kv_length, DeviceArray<uint32_t>::Copy(*runtime_, kv_length, "kv length"));
  IHA_ASSIGN_OR_RETURN(places.page_table, DeviceArray<int32_t>::Copy(*runtime_, table, "page table"));
  return &places;
}

absl::StatusOr<const uint32_t*> DeviceStep::TokenRows(uint32_t factor) {
  const auto [at, fresh] = token_rows_.try_emplace(factor);
  if (!fresh) return at->second.data();
  std::vector<uint32_t> rows;
  for (const uint32_t position : positions_) rows.push_back(position * factor);
  IHA_ASSIGN_OR_RETURN(at->second, DeviceArray<uint32_t>::Copy(*runtime_, rows, "token rows"));
  return at->second.data();
}

DeviceRopes::DeviceRopes(DeviceRuntime& runtime, const checkpoint::ModelConfig& config, uint32_t half)
    : runtime_(runtime) {
  for (const checkpoint::RopeSpec& spec : config.ropes) {
    Table& table = tables_.emplace_back();
    table.frequency = checkpoint::InverseFrequencies(spec, config.head_dim);
    table.frequency.resize(half);  // 0: an angle of 0
    table.factor = spec.attention_factor;
  }
}

absl::Status DeviceRopes::Extend(uint32_t row) {
  if (row < rows_) return absl::OkStatus();
  const size_t rows = std::max<size_t>({size_t{row} + 1, 2 * rows_, 256});
  for (Table& table : tables_) {
    std::vector<float> cos(rows * table.frequency.size()), sin(cos.size());
    kernels::FillRopeTable(table.frequency.data(), table.frequency.size(), 0, rows, table.factor, cos.data(),
                           sin.data());
    IHA_ASSIGN_OR_RETURN(table.cos, DeviceArray<float>::Copy(runtime_, cos, "cos"));
    IHA_ASSIGN_OR_RETURN(table.sin, DeviceArray<float>::Copy(runtime_, sin, "sin"));
  }
  rows_ = rows;
  return absl::OkStatus();
}

}  // namespace iha::model
