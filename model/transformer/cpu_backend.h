// cpu_backend.h: the exact CPU engine: a checkpoint, packed, behind the Backend contract (numerics id `cpu-exact`).
//
// The order of every operation is fixed by docs/contracts/numerics.md; threads, chunking and vector width change no
// bit. Open blocks while it packs and digests the weights (mapped pages are dropped afterwards). Errors: Unimplemented
// for a layer kind or activation that the CPU engine lacks, ResourceExhausted for memory.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/eval_types.h"
#include "model/backend.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/cost.h"

namespace iha::model {

struct CpuBackendOptions {
  int threads = 1;
  NumericsSpec numerics;         // backend "cpu-exact"; kv_dtype f32 or bf16
  const Clock* clock = nullptr;  // for the profile; null = none
  // What iha layers cache: no bit depends on it, memory and speed do.
  checkpoint::IhaCacheForm iha_cache = checkpoint::IhaCacheForm::kByRule;
};

absl::StatusOr<std::unique_ptr<Backend>> OpenCpuBackend(const checkpoint::Checkpoint& checkpoint,
                                                        const CpuBackendOptions& options);

}  // namespace iha::model
