// upcycle.h: a checkpoint with ordinary attention becomes one with IHA that computes the same function.
//
// Each chosen global or local layer becomes `iha` with alpha(m,h,j) = 1(m=h), collapse 1/P, mask token_causal and RoPE
// at token positions (docs/checkpoints.md): P = 1 gives the same bits in exact mode, P > 1 the same logits up to
// rounding (bit for bit where sums of P equal terms are exact). A token window stays one, pre_rope norms become
// pre_mix, modifiers stay; the weights are copied as stored, the mixers are F32. `noise` adds noise * z to every entry
// of alpha and collapse, z of mean 0 and variance 1, the sum of 12 uniforms: a pure function of (seed, layer, tensor,
// entry), equal on every machine and for both alpha layouts.
//
// The result is a Llama config plus `iha_eval` for any source family whose function that can say: llama (with or
// without iha_eval), mistral, qwen2 (o_proj gets a bias of zeros), qwen3. Files: config.json, upcycle.json (where it
// came from), the source's tokenizer and generation files, and its weights cut into the same shards. Written into a
// temporary folder beside `out`, opened as a checkpoint and checked against the plan, then renamed: `out` is whole or
// absent. Memory is bounded: tensors are streamed from the mapped source. Blocking (the size of the model is read and
// written). Equal arguments give equal bytes. Thread: any.
// Errors: AlreadyExists (something lies at `out`), InvalidArgument (a model that cannot be said so; GQA without
// expand_kv), those of Checkpoint::Open and common/file.h: nothing is left at `out`.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/digest.h"
#include "model/checkpoint/config.h"

namespace iha::checkpoint {

struct UpcycleOptions {
  int64_t pseudo_heads = 1;  // P, 1..4096
  bool expand_kv = false;    // key and value heads are repeated until there are num_attention_heads of them
  AlphaLayout alpha_layout = AlphaLayout::kSourceTargetPseudo;
  CollapseKind collapse = CollapseKind::kPerHead;
  std::optional<std::vector<int64_t>> layers = std::nullopt;  // absent: all; others stay as they are
  double noise = 0;                                           // >= 0
  uint64_t seed = 0;
  const std::atomic<bool>* stop = nullptr;  // once true, writing ends with Cancelled; nothing is left behind
};

// The config that the result has. Pure.
absl::StatusOr<ModelConfig> UpcycledConfig(const ModelConfig& source, const UpcycleOptions& options);

struct UpcycleResult {
  int64_t layers = 0;      // that became iha
  int64_t parameters = 0;  // of the result
  Digest source;           // weights digests
  Digest digest;
};
absl::StatusOr<UpcycleResult> Upcycle(const std::string& model, const std::string& out, const UpcycleOptions& options);

}  // namespace iha::checkpoint
