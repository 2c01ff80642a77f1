// backend_module.h: backends that live in shared libraries of their own, loaded when they are first asked for.
//
// A module is libiha_NAME_backend.so (common/module_path.h) with one C symbol, `iha_backend_module`, that points at a
// BackendModule. So programs start without LibTorch or CUDA, and run where these are absent. A module is built from the
// same sources as the program (`abi` tells a stale one), links its own copy of what it needs of ours and stays loaded.
// Thread: any. Errors: Unavailable (no module, a library it needs is missing, no such device), FailedPrecondition
// (module of another build), and what opening a model gives (open_model.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/eval_types.h"
#include "model/backend.h"
#include "model/checkpoint/checkpoint.h"

namespace iha::model {

struct BackendRequest {
  const checkpoint::Checkpoint* checkpoint = nullptr;  // read until `open` returns
  int threads = 1;
  std::string device = "cpu";  // cpu, cuda, cuda:N
  NumericsSpec numerics;
  bool profile = false;  // of operations, on a GPU (Backend::profile)
};

// Raised whenever BackendModule, BackendRequest, Backend or Checkpoint change their layout.
inline constexpr int kBackendModuleAbi = 5;

struct BackendModule {
  int abi = kBackendModuleAbi;
  // 0 for the CPU, else the compute capability of the GPU: 90 for 9.0. Unavailable: this host has no such device.
  absl::StatusOr<int> (*architecture)(const std::string& device) = nullptr;
  absl::StatusOr<std::unique_ptr<Backend>> (*open)(const BackendRequest& request) = nullptr;
};

// First thing in main, while there is one thread: LibTorch's threads (OpenMP) shall sleep between parallel parts. By
// default they spin, which on shared cores makes a step ten times longer. What the environment says already stays.
void PrepareForBackendModules();

// The module named `name`, loaded at the first call.
absl::StatusOr<const BackendModule*> LoadBackendModule(const std::string& name);

}  // namespace iha::model
