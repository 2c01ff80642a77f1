// device_fast.h: what numerics `fast` use beside the kernels whose orders of sums are fixed (docs/contracts/device.md).
//
// A vendor's products and attention, and in how many pieces the keys of decode steps are worked on. What a row's bits
// are may depend on all rows of the step. Everything is enqueued in the runtime's stream; while launches are recorded
// Matmul may be called, CausalAttention not. Thread: the backend's. Errors: Internal, ResourceExhausted (of the
// library).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/matmul/matmul_gpu.h"

namespace iha::model {

class DeviceFast {
 public:
  virtual ~DeviceFast() = default;
  // Multiprocessors: a decode step is cut until each has work.
  virtual uint32_t processors() const = 0;
  // The product that MatmulGpu is. false: not of this shape; nothing was enqueued.
  virtual absl::StatusOr<bool> Matmul(const kernels::MatmulGpuArgs& args) = 0;

  // One sequence from its beginning: row i sees keys 0 .. i.
  struct Prompt {
    const uint16_t* q = nullptr;  // [rows][heads][d]
    const uint16_t* k = nullptr;  // [rows][kv_heads][d]
    const uint16_t* v = nullptr;
    uint16_t* out = nullptr;  // [rows][heads][d]
    uint32_t rows = 0;
    uint32_t heads = 0;
    uint32_t kv_heads = 0;
    uint32_t d = 0;
    float scale = 1.0f;
  };
  virtual absl::StatusOr<bool> CausalAttention(const Prompt& prompt) = 0;
};

// Shorter prompts go to our kernel: a call of a library's costs more than it saves.
inline constexpr uint32_t kFastPromptRows = 128;

// Split keys and nothing else: what the emulator runs.
class SplitKeysOnly final : public DeviceFast {
 public:
  explicit SplitKeysOnly(uint32_t processors) : processors_(processors) {}
  uint32_t processors() const override { return processors_; }
  absl::StatusOr<bool> Matmul(const kernels::MatmulGpuArgs& /*args*/) override { return false; }
  absl::StatusOr<bool> CausalAttention(const Prompt& /*prompt*/) override { return false; }

 private:
  const uint32_t processors_;
};

}  // namespace iha::model
