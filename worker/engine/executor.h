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
#include "worker/engine/batch_plan.h"

namespace iha::engine {

class Executor {
 public:
  // Reserves a cache of as many whole blocks as fit into `kv_bytes`. ResourceExhausted, naming bytes needed and
  // available: not a block of each layer group fits, or the backend cannot have the memory.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(std::unique_ptr<model::Backend> backend, int64_t kv_bytes);

  // Copies, then the forward pass. ResourceExhausted: run less at once. Any other error: the step is lost.
  absl::Status Execute(const BatchPlan& plan);
  // Of the last Execute: row i over all segments in order. Valid until the next one.
  std::span<const float> Logits(int64_t row) const;

  model::OpTotals profile() const { return backend_->profile(); }
  const model::ModelInfo& info() const { return backend_->info(); }
  int32_t kv_blocks() const { return kv_blocks_; }

 private:
  Executor(std::unique_ptr<model::Backend> backend, int32_t kv_blocks)
      : backend_(std::move(backend)), kv_blocks_(kv_blocks) {}

  const std::unique_ptr<model::Backend> backend_;
  const int32_t kv_blocks_;
  std::vector<float> logits_;  // keeps its size between steps
};

}  // namespace iha::engine
