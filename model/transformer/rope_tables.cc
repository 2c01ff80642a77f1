#include "model/transformer/rope_tables.h"

#include <algorithm>

namespace iha::model {

RopeTables::RopeTables(std::span<const checkpoint::RopeSpec> specs, int64_t head_dim)
    : half_(static_cast<size_t>(head_dim) / 2) {
  for (const checkpoint::RopeSpec& spec : specs) {
    embeddings_.push_back({checkpoint::InverseFrequencies(spec, head_dim), spec.attention_factor, {}});
  }
}

RopeTable RopeTables::Rows(int32_t rope, uint32_t step, uint32_t row) {
  Embedding& embedding = embeddings_[static_cast<size_t>(rope)];
  auto table = std::ranges::find(embedding.tables, step, &Table::step);
  if (table == embedding.tables.end()) table = embedding.tables.insert(table, Table{.step = step});
  if (row >= table->rows) Extend(embedding, size_t{row} + 1, *table);
  return {table->cos.data(), table->sin.data()};
}

void RopeTables::Extend(const Embedding& embedding, size_t rows, Table& table) const {
  // Grow by half, so that a long decode fills each row once and copies little.
  rows = std::max<size_t>({rows, table.rows + table.rows / 2, 256});
  table.cos.resize(rows * half_);
  table.sin.resize(rows * half_);
  for (; table.rows < rows; table.rows++) {
    kernels::FillRopeTable(embedding.frequency.data(), half_, static_cast<uint32_t>(table.rows) * table.step, 1,
                           embedding.factor, table.cos.data() + table.rows * half_,
                           table.sin.data() + table.rows * half_);
  }
}

}  // namespace iha::model
