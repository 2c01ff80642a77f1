// device_attention.h: one attention layer on a device, of any kind: the kernels in order.
//
// Order: projections (knocking folded in or after them), pre norms, RoPE [iha: mix with RoPE and post norms], append,
// attention over pages [talking heads: with its mixes], [iha: collapse | diff: difference,] xsa, gate, o_proj. All rows
// are bf16. Head sizes without a kernel are padded (device_weights.h): the scale and the means of norms are those of
// the true size. Which kernel of several does a step depends on the layer, never on the batch. Thread: the backend's.
// Errors of Make: those of DeviceWeights; of Forward: the runtime's.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/attention/attention_gpu.h"
#include "model/checkpoint/config.h"
#include "model/device/device_profile.h"
#include "model/device/device_step.h"
#include "model/device/device_weights.h"

namespace iha::model {

// The head size that has kernels for one of d values; 0: none.
uint32_t DeviceHeadSize(int64_t d);

// FailedPrecondition, naming the first layer and what of it has no kernel, or none whose blocks do with so much shared
// memory, unless all have theirs.
absl::Status CheckDeviceLayers(const checkpoint::ModelConfig& config,
                               size_t max_shared_bytes = kernels::kGpuMaxSharedBytes);

class DeviceAttention {
 public:
  static absl::StatusOr<DeviceAttention> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                              const DeviceWeights& weights);

  DeviceCache::LayerShape cache_shape() const;
  // The last row of the RoPE tables that a step up to `position` turns by.
  uint32_t LastRopeRow(uint32_t position) const;
  // x, out: [tokens][hidden, padded]; out is written.
  absl::Status Forward(DeviceRuntime& runtime, DeviceProfile& profile, DeviceStep& step, const DeviceRopes& ropes,
                       const DeviceCache::Layer& cache, const uint16_t* x, uint16_t* out) const;

 private:
  struct Heads {
    DeviceRows q, k, v;
  };
  DeviceAttention(const checkpoint::ModelConfig& config, int64_t layer);
  absl::Status LoadInputs(const checkpoint::ModelConfig& config, const std::string& at, const DeviceWeights& weights);
  absl::Status LoadKind(const checkpoint::ModelConfig& config, const std::string& at, const DeviceWeights& weights);
  absl::Status LoadIha(const checkpoint::ModelConfig& config, const std::string& at, const DeviceWeights& weights);
  absl::Status LoadOutput(const checkpoint::ModelConfig& config, const std::string& at, const DeviceWeights& weights);

  // For the profile. A gate's and lambda's projections count for the output; of attention: scores and weighted sums of
  // every visible pair, visible keys and values once a sequence.
  OpWork ProjectWork(uint32_t tokens) const;
  OpWork MixWork(uint32_t tokens) const;
  OpWork AttendWork(const DeviceStep& step) const;
  OpWork CollapseWork(uint32_t tokens) const;
  OpWork OutputWork(uint32_t tokens) const;
  kernels::AttentionGpuMask Mask() const;
  absl::StatusOr<Heads> Project(DeviceRuntime& runtime, uint32_t tokens, const uint16_t* x) const;
  absl::Status KnockValues(DeviceRuntime& runtime, uint32_t tokens, DeviceRows& v) const;
  absl::Status NormHeads(DeviceRuntime& runtime, uint32_t rows, const Heads& heads) const;
  absl::Status Rotate(DeviceRuntime& runtime, const DeviceRopes& ropes, const uint32_t* rope_rows, uint32_t rows,
                      const Heads& heads) const;
  // From base heads to pseudo ones, normed and rotated.
  absl::StatusOr<Heads> Mix(DeviceRuntime& runtime, DeviceStep& step, const DeviceRopes& ropes,
                            const Heads& base) const;
  // Norms, then RoPE in place or the mix, which comes back; keys and values are in the cache then.
  absl::StatusOr<Heads> Place(DeviceRuntime& runtime, DeviceStep& step, const DeviceRopes& ropes,
                              const DevicePlaces& places, const kernels::KvPagesGpu& pages, const Heads& base) const;
  absl::Status Append(DeviceRuntime& runtime, const DevicePlaces& places, const kernels::KvPagesGpu& pages,
                      const Heads& heads) const;
  absl::StatusOr<DeviceRows> Attend(DeviceRuntime& runtime, const DevicePlaces& places,
                                    const kernels::KvPagesGpu& pages, const Heads& heads) const;
  // Numerics `fast`: whole prompts by the library, decode steps in pieces. false: neither; nothing was enqueued.
  absl::StatusOr<bool> AttendPrompts(DeviceFast& fast, const DevicePlaces& places, const Heads& heads,
                                     const kernels::AttentionGpuArgs& args) const;
  absl::StatusOr<bool> AttendInPieces(DeviceRuntime& runtime, const DevicePlaces& places,
                                      kernels::AttentionGpuArgs args) const;
  absl::Status AttendTalking(DeviceRuntime& runtime, const kernels::AttentionGpuArgs& args) const;
  absl::StatusOr<DeviceRows> Collapse(DeviceRuntime& runtime, uint32_t tokens, const DeviceRows& attended,
                                      const DeviceRows& values) const;
  // Difference, xsa and gate in one pass; y may be of more heads than come out.
  absl::StatusOr<DeviceRows> Finish(DeviceRuntime& runtime, uint32_t tokens, const uint16_t* x,
                                    const DeviceRows& base_v, DeviceRows y) const;
  bool post_mix() const { return spec_.qk_norm == checkpoint::QkNorm::kPostMix; }
  bool virtual_rope() const { return spec_.rope_positions == checkpoint::IhaPositions::kVirtual; }

  checkpoint::LayerSpec spec_;
  uint32_t heads_, kv_heads_, value_heads_, out_heads_;  // out: what o_proj takes
  uint32_t pseudo_, true_d_, d_, d_v_;
  float scale_, norm_eps_;
  bool norm_plus_one_;
  DeviceLinear q_, k_, v_, o_;
  DeviceLinear knock_up_, knock_gate_, knock_down_;
  DeviceRows q_norm_, k_norm_;
  // iha
  uint32_t terms_ = 1, collapse_terms_ = 1;  // of alpha, of the global collapse
  DeviceRows alpha_q_, alpha_k_, alpha_v_, collapse_global_;
  DeviceArray<float> collapse_, shift_cos_, shift_sin_;
  // diff
  DeviceLinear lambda_proj_;
  DeviceArray<float> sub_norm_;
  float lambda_ = 0;
  DeviceArray<float> pre_, post_;  // talking heads
  DeviceLinear gate_;
};

}  // namespace iha::model
