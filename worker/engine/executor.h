// executor.h: carries out BatchPlans on a model backend. Owns the backend and its cache memory.
//
// Belongs to one thread; Execute blocks until the step is done. CPU, fake and CUDA models stand behind the same
// model::Backend, so this is the only executor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/backend.h"
#include "model/token_drawing.h"
#include "worker/engine/batch_plan.h"

namespace iha::engine {

class Executor {
 public:
  // Reserves a cache of as many whole blocks as fit into `kv_bytes`. ResourceExhausted, naming bytes needed and
  // available: not a block of each layer group fits, or the backend cannot have the memory.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(std::unique_ptr<model::Backend> backend, int64_t kv_bytes);

  // Whether the backend draws tokens; else the caller does, from Logits.
  bool draws() const { return drawing_ != nullptr; }
  // Copies, then the forward pass. draws: of each of the plan's logit_rows, over all segments in order; not read unless
  // draws(). ResourceExhausted: run less at once. Any other error: the step is lost.
  absl::Status Execute(const BatchPlan& plan, std::span<const model::RowDraw> draws);
  // Of the last Execute, row i of those. A token that was drawn, or kNoToken: then, and only then, Logits has its row.
  int32_t Token(int64_t row) const { return tokens_[static_cast<size_t>(row)]; }
  std::span<const float> Logits(int64_t row) const;

  model::OpTotals profile() const { return backend_->profile(); }
  const model::ModelInfo& info() const { return backend_->info(); }
  int32_t kv_blocks() const { return kv_blocks_; }

 private:
  Executor(std::unique_ptr<model::Backend> backend, int32_t kv_blocks)
      : backend_(std::move(backend)), drawing_(backend_->drawing()), kv_blocks_(kv_blocks) {}

  absl::Status Draw(std::span<const model::Segment> segments, std::span<const model::RowDraw> draws);
  // Room for so many rows.
  absl::StatusOr<std::span<float>> Rows(size_t rows);

  const std::unique_ptr<model::Backend> backend_;
  model::TokenDrawing* const drawing_;  // the backend's, or null
  const int32_t kv_blocks_;
  std::vector<float> logits_;  // keeps its size between steps
  // Of each row of the step.
  std::vector<int32_t> tokens_;
  std::vector<size_t> at_;  // its place in logits_, where no token was drawn
};

}  // namespace iha::engine
