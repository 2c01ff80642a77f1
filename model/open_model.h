// open_model.h: a checkpoint folder, opened for running: which backend it takes, its weights, tokenizer and eos ids.
//
// A folder is a Hugging Face style checkpoint (exact CPU engine, or the emulated device or the torch backend where
// numerics ask for it, our kernels on a GPU likewise) or one of type iha_fake (fake backend). Blocking: reads and packs
// the weights. Thread: any. Errors name the folder: NotFound, InvalidArgument, DataLoss (bad checkpoint),
// FailedPrecondition (these numerics cannot run it), Unimplemented (a layer that the backend lacks), ResourceExhausted,
// Unavailable (no such backend or device here).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/digest.h"
#include "common/eval_types.h"
#include "model/backend.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::model {

struct OpenOptions {
  int threads = 1;
  // backend cpu-exact, cuda-exact-sm_NN, cuda-fast-sm_NN, cuda-emulated, cuda-fast-emulated, torch, torch-cuda-sm_NN;
  // or fake: the folder's own
  NumericsSpec numerics;
  std::string device = "cpu";  // those with an architecture: cuda or cuda:N
  // So many must be runnable, also beyond the checkpoint's context, whose rules then go on unchanged; 0 = the context.
  // The identity of the weights stays. InvalidArgument: its angles would no longer be exact.
  int64_t positions = 0;
  // For the profile of the exact CPU engine and the emulated device; null = none. Must outlive the model.
  const Clock* clock = nullptr;
  // A device's operations are timed, too, by the clock or the GPU's own; then steps are enqueued one operation after
  // another, none is replayed.
  bool profile_device = false;
};

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  std::vector<int32_t> eos;  // ids that end a generation
};

struct OpenedModel {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<Backend> backend;
  std::vector<int32_t> eos;
};

// What identifies a checkpoint; reads every weight once, packs none.
struct ModelIdentity {
  Digest weights;
  Digest tokenizer;  // TextDigest
  int64_t context_tokens = 0;
};

// How text becomes ids, and which ids end a generation: with the weights, all that decides what a model answers. Two
// folders that differ in generation_config.json's eos ids alone are two models.
Digest TextDigest(const tokenizer::Tokenizer& tokenizer, const std::vector<int32_t>& eos);

absl::StatusOr<OpenedBackend> OpenBackend(const std::string& folder, const OpenOptions& options);
absl::StatusOr<OpenedModel> OpenModel(const std::string& folder, const OpenOptions& options);
// The backend that LibTorch is on `device` (cpu, cuda, cuda:N). Unavailable: this build or host cannot run anything
// there. Loads what a GPU needs.
absl::StatusOr<std::string> TorchBackendOn(const std::string& device);
// What our kernels are called on `device` (cuda, cuda:N): CudaExactName. Unavailable likewise. Loads the CUDA module.
absl::StatusOr<std::string> CudaBackendOn(const std::string& device);
// The same of CudaFastName: also Unavailable where LibTorch's CUDA part is not. Loads it.
absl::StatusOr<std::string> CudaFastBackendOn(const std::string& device);
// All that can be run on `device`: cpu, emulated, cuda, cuda:N. Not empty. Unavailable: nothing; says why.
absl::StatusOr<std::vector<NumericsSpec>> NumericsOn(const std::string& device);
absl::StatusOr<ModelIdentity> IdentifyModel(const std::string& folder);

}  // namespace iha::model
