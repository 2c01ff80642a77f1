// rope_tables.h: cos and sin of every position seen so far, for each rotary embedding of a model.
//
// Rows are filled in order and once, so a position's bits never depend on when it was first asked for (NUM-5).
// Thread: the backend's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rope/rope.h"
#include "model/checkpoint/rope.h"

namespace iha::model {

class RopeTables {
 public:
  RopeTables(std::span<const checkpoint::RopeSpec> specs, int64_t head_dim);

  // Afterwards rows 0 .. position of every table are filled.
  void Extend(uint32_t position);

  size_t half() const { return half_; }
  const float* cos(int32_t rope) const { return tables_[static_cast<size_t>(rope)].cos.data(); }
  const float* sin(int32_t rope) const { return tables_[static_cast<size_t>(rope)].sin.data(); }

 private:
  struct Table {
    std::vector<double> frequency;
    double factor = 1.0;
    std::vector<float> cos;
    std::vector<float> sin;
  };
  size_t half_;
  size_t rows_ = 0;
  std::vector<Table> tables_;
};

}  // namespace iha::model
