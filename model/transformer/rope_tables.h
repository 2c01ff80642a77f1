// rope_tables.h: cos and sin of every position seen so far, for each rotary embedding of a model.
//
// A table has a step: its row r is position r * step, so that IHA layers, whose heads turn by every P-th position
// before they are mixed, keep a row for each token, not P. Rows are filled in order and once; a position's bits depend
// neither on the table nor on when it was first asked for (NUM-5). A row is head_dim / 2 pairs of fp32. Thread: the
// backend's. Throws std::bad_alloc; rows that were there stay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rope/rope.h"
#include "model/checkpoint/rope.h"

namespace iha::model {

struct RopeTable {
  const float* cos;  // [row][head_dim / 2]
  const float* sin;
};

class RopeTables {
 public:
  RopeTables(std::span<const checkpoint::RopeSpec> specs, int64_t head_dim);

  // Of embedding `rope`, with rows 0 .. row at least; stands until the next call for the same rope and step.
  RopeTable Rows(int32_t rope, uint32_t step, uint32_t row);

 private:
  struct Table {
    uint32_t step;
    size_t rows = 0;
    std::vector<float> cos{}, sin{};
  };
  struct Embedding {
    std::vector<double> frequency;
    double factor = 1.0;
    std::vector<Table> tables;  // one for each step asked for: one or two
  };
  void Extend(const Embedding& embedding, size_t rows, Table& table) const;

  size_t half_;
  std::vector<Embedding> embeddings_;
};

}  // namespace iha::model
