#include "model/transformer/rope_tables.h"

#include <algorithm>

namespace iha::model {

RopeTables::RopeTables(std::span<const checkpoint::RopeSpec> specs, int64_t head_dim)
    : half_(static_cast<size_t>(head_dim) / 2) {
  for (const checkpoint::RopeSpec& spec : specs) {
    Table& table = tables_.emplace_back();
    table.frequency = checkpoint::InverseFrequencies(spec, head_dim);
    table.factor = spec.attention_factor;
  }
}

void RopeTables::Extend(uint32_t position) {
  if (position < rows_) return;
  // Grow by half, so that a long decode fills each row once and copies little.
  const size_t rows = std::max<size_t>({size_t{position} + 1, rows_ + rows_ / 2, 256});
  for (Table& table : tables_) {
    table.cos.resize(rows * half_);
    table.sin.resize(rows * half_);
    kernels::FillRopeTable(table.frequency.data(), half_, static_cast<uint32_t>(rows_), rows - rows_, table.factor,
                           table.cos.data() + rows_ * half_, table.sin.data() + rows_ * half_);
  }
  rows_ = rows;
}

}  // namespace iha::model
