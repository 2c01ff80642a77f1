// fake_cudart.h: CUDA's runtime over host memory, for tests of what is written on top of it where there is no GPU.
//
// A stream does nothing until somebody waits: copies, frees and event records are queued and done in order at a
// synchronization, so a source that is reused too early, or a result that is read too early, shows. Memory of the
// device is marked by an address of its own: copies check that they go from host to device or back, and stay inside of
// one allocation. Of what is captured, each launch of the graph queues all. One test at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace iha::model::testing {

struct FakeCuda {
  // What the host has.
  int devices = 1;
  int driver = 13000;
  int architecture = 90;
  int max_shared_bytes = 232448;
  cudaError_t count_error = cudaSuccess;
  size_t memory = size_t{1} << 30;  // of the device, bytes
  // The call of this name fails with it from its `failing_from`-th time on.
  std::string failing;
  int failing_from = 1;
  cudaError_t error = cudaErrorUnknown;

  // What happened.
  int current_device = 0;
  std::vector<std::function<void()>> queue;
  std::map<std::byte*, size_t> device_memory, pinned;
  std::map<std::string, int> calls;
  std::set<void*> streams, pools, events, graphs, executables;
  std::vector<std::function<void()>> captured;
  bool capturing = false;
  std::vector<const char*> mistakes;  // literals
  size_t used = 0;
  size_t kept = 0;  // by pools, for allocations to come
  int waits = 0;    // that found something to do
  // A kernel takes a millisecond; when each event was passed.
  float milliseconds = 0;
  std::map<void*, float> passed;

  void Enqueue(std::function<void()> work) { (capturing ? captured : queue).push_back(std::move(work)); }
  void Drain();
  [[nodiscard]] bool NothingLeft() const {
    return queue.empty() && device_memory.empty() && pinned.empty() && streams.empty() && pools.empty() &&
           events.empty() && graphs.empty() && executables.empty();
  }
};

// The one that the functions act on, as new after Reset.
FakeCuda& Fake();
void ResetFake();

}  // namespace iha::model::testing
