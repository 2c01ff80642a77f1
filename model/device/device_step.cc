#include "model/device/device_step.h"

#include <algorithm>

#include "common/status_macros.h"
#include "kernels/rope/rope.h"
#include "model/checkpoint/rope.h"

namespace iha::model {

absl::StatusOr<DeviceStep> DeviceStep::Make(DeviceRuntime& runtime, const DeviceCache& cache,
                                            std::span<const Segment> segments, uint32_t table_blocks) {
  DeviceStep self(runtime, cache, table_blocks);
  IHA_RETURN_IF_ERROR(self.Refill(segments));
  return self;
}

template <class T>
absl::Status DeviceStep::Put(DeviceArray<T>& array, const std::vector<T>& values, const char* name) const {
  if (!array.empty()) return array.Set(values);
  IHA_ASSIGN_OR_RETURN(array, DeviceArray<T>::Copy(*runtime_, values, name));
  return absl::OkStatus();
}

absl::Status DeviceStep::Refill(std::span<const Segment> segments) {
  segments_.clear();
  positions_.clear();
  last_position_ = 0;
  std::vector<int32_t> ids, logit_rows;
  for (const Segment& segment : segments) {
    if (segment.tokens.empty()) continue;
    for (const int32_t row : segment.logit_rows) logit_rows.push_back(static_cast<int32_t>(ids.size()) + row);
    ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
    for (size_t i = 0; i < segment.tokens.size(); i++) {
      positions_.push_back(static_cast<uint32_t>(segment.start) + static_cast<uint32_t>(i));
    }
    last_position_ = std::max(last_position_, positions_.back());
    segments_.push_back(segment);
  }
  IHA_RETURN_IF_ERROR(Put(ids_, ids, "ids"));
  IHA_RETURN_IF_ERROR(Put(logit_rows_, logit_rows, "logit rows"));
  for (auto& [key, places] : places_) IHA_RETURN_IF_ERROR(FillPlaces(key.first, key.second, places));
  for (auto& [factor, rows] : token_rows_) IHA_RETURN_IF_ERROR(FillTokenRows(factor, rows));
  return absl::OkStatus();
}

absl::StatusOr<const DevicePlaces*> DeviceStep::PlacesOf(uint32_t pseudo, size_t group) {
  const auto [at, fresh] = places_.try_emplace({pseudo, group});
  if (fresh) IHA_RETURN_IF_ERROR(FillPlaces(pseudo, group, at->second));
  return &at->second;
}

absl::Status DeviceStep::FillPlaces(uint32_t pseudo, size_t group, DevicePlaces& places) const {
  const size_t groups = cache_->windows().size();
  size_t blocks = table_blocks_;
  for (const Segment& segment : segments_) blocks = std::max(blocks, TableOf(segment, group, groups).size());
  places.sequences = static_cast<uint32_t>(segments_.size());
  places.pages_per_sequence = static_cast<uint32_t>(blocks) * pseudo;
  places.max_rows = 0;
  places.max_keys = table_blocks_ * pseudo * kKvBlockTokens;
  places.whole = table_blocks_ == 0;
  std::vector<uint32_t> positions, row_sequence, q_begin = {0}, kv_length;
  std::vector<int32_t> table(size_t{places.sequences} * places.pages_per_sequence, kNoKvBlock);
  for (uint32_t s = 0; s < places.sequences; s++) {
    const Segment& segment = segments_[s];
    const auto start = static_cast<uint32_t>(segment.start), count = static_cast<uint32_t>(segment.tokens.size());
    for (uint32_t position = start * pseudo; position < (start + count) * pseudo; position++) {
      positions.push_back(position);
      row_sequence.push_back(s);
    }
    places.whole = places.whole && start == 0;
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
  IHA_RETURN_IF_ERROR(Put(places.positions, positions, "positions"));
  IHA_RETURN_IF_ERROR(Put(places.row_sequence, row_sequence, "row sequence"));
  IHA_RETURN_IF_ERROR(Put(places.q_begin, q_begin, "q begin"));
  places.row_begin = std::move(q_begin);
  IHA_RETURN_IF_ERROR(Put(places.kv_length, kv_length, "kv length"));
  return Put(places.page_table, table, "page table");
}

absl::StatusOr<const uint32_t*> DeviceStep::TokenRows(uint32_t factor) {
  const auto [at, fresh] = token_rows_.try_emplace(factor);
  if (fresh) IHA_RETURN_IF_ERROR(FillTokenRows(factor, at->second));
  return at->second.data();
}

absl::Status DeviceStep::FillTokenRows(uint32_t factor, DeviceArray<uint32_t>& rows) const {
  std::vector<uint32_t> values;
  for (const uint32_t position : positions_) values.push_back(position * factor);
  return Put(rows, values, "token rows");
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
  moves_++;  // also where memory does not suffice for all of them
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
