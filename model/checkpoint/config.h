// config.h: a checkpoint's config.json, read once into one value that says everything the forward pass must know.
//
// All differences between families, transformers versions and our attention variants end here: later code looks at
// these fields and never at a family or at JSON. Fields that published configs leave out take the defaults of their
// transformers class (families.h); inside `iha_eval` nothing has a default. Values are immutable after parsing and
// free to copy; thread: any. Errors are InvalidArgument, one line "config.json: FIELD ..." (the caller prefixes the
// folder). Block `iha_eval`: docs/checkpoints.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/digest.h"
#include "model/checkpoint/rope.h"

namespace iha::checkpoint {

enum class Family { kLlama, kMistral, kQwen2, kQwen3, kGemma3Text };
enum class Activation { kSilu, kGeluErf, kGeluTanh, kRelu };
enum class MlpKind { kGated, kPlain };  // act(gate) * up, or act(up); then down

enum class AttentionKind { kGlobal, kLocal, kIha, kTalkingHeads, kDiff, kDiffV2 };
enum class RopePairing { kHalf, kInterleaved };            // (i, i + d/2) or (2i, 2i + 1)
enum class QkNorm { kNone, kPreRope, kPreMix, kPostMix };  // RMSNorm over d of q and k; the last two: iha only
enum class WindowUnit { kToken, kVirtual };
enum class AlphaLayout { kSourceTargetPseudo, kTargetPseudoSource };  // [H,H,P] or [H,P,H]
enum class CollapseKind { kPerHead, kGlobal };                        // [H,P] or [H,H*P]
enum class IhaMask { kFlatCausal, kTokenCausal };
enum class IhaPositions { kVirtual, kToken };
enum class Xsa { kOff, kPseudo, kOutput };
enum class Gate { kOff, kHeadwise, kElementwise };
enum class Knocking { kOff, kLinear, kMlp };

const char* NameOf(Family family);          // model_type: "llama", "gemma3_text", ...
const char* NameOf(Activation activation);  // "silu", "gelu", "gelu_pytorch_tanh", "relu"
const char* NameOf(AttentionKind kind);     // "global", "talking_heads", ...
const char* NameOf(AlphaLayout layout);
const char* NameOf(CollapseKind kind);
const char* NameOf(QkNorm norm);  // "none", "pre_rope", ...

// Query n sees n - size + 1 .. n, in tokens or (iha) in virtual tokens.
struct Window {
  WindowUnit unit = WindowUnit::kToken;
  int64_t size = 0;
  bool operator==(const Window&) const = default;
};

// One attention layer. Fields of other kinds keep their initial values, so equal functions compare equal.
struct LayerSpec {
  AttentionKind kind = AttentionKind::kGlobal;
  std::optional<Window> window = std::nullopt;  // kLocal: always; kGlobal: never
  RopePairing rope_pairing = RopePairing::kHalf;
  QkNorm qk_norm = QkNorm::kNone;
  int32_t rope = 0;  // index into ModelConfig::ropes

  int64_t pseudo_heads = 1;  // iha: P
  AlphaLayout alpha_layout = AlphaLayout::kSourceTargetPseudo;
  CollapseKind collapse = CollapseKind::kPerHead;
  IhaMask mask = IhaMask::kFlatCausal;
  IhaPositions rope_positions = IhaPositions::kVirtual;

  double lambda_init = 0.0;  // diff: "depth" already resolved with the layer index
  double norm_eps = 0.0;     // diff: of the sub-norm

  Xsa xsa = Xsa::kOff;
  Gate gate = Gate::kOff;
  Knocking knocking = Knocking::kOff;
  bool operator==(const LayerSpec&) const = default;
};

struct ModelConfig {
  Family family = Family::kLlama;
  bool has_iha_eval = false;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;     // query heads
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;
  double rms_norm_eps = 0.0;
  double attention_scale = 0.0;  // multiplies q.k: head_dim^-0.5, Gemma: query_pre_attn_scalar^-0.5
  Activation activation = Activation::kSilu;
  MlpKind mlp = MlpKind::kGated;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;   // no lm_head.weight: the head is embed_tokens
  bool norm_plus_one = false;     // Gemma: stored norm weights are w - 1
  bool sandwich_norms = false;    // Gemma: also norms after attention and after the MLP, before the residual sums
  double embedding_scale = 1.0;   // Gemma: sqrt(hidden_size), exact (not rounded to the weights' dtype)
  int64_t context_tokens = 0;     // max_position_embeddings
  std::vector<RopeSpec> ropes;    // at least one; LayerSpec::rope points here
  std::vector<LayerSpec> layers;  // num_hidden_layers of them

  // No part of the function:
  std::string stored_dtype;  // torch_dtype / dtype, "" if absent: the tensors' own dtypes count
  std::optional<int32_t> bos_token_id;
  std::vector<int32_t> eos_token_ids;  // generation_config.json, if it names any, wins over these
  std::vector<std::string> unknown_fields;
  std::vector<std::string> warnings;  // one for each unknown field

  int64_t num_layers() const { return static_cast<int64_t>(layers.size()); }
  // Query heads whose outputs reach o_proj: H, diff_v2: H / 2.
  int64_t output_heads(const LayerSpec& layer) const {
    return layer.kind == AttentionKind::kDiffV2 ? num_heads / 2 : num_heads;
  }
  // Canonical encoding of all fields that decide the function (not the last group): equal for every form of a config.
  std::string FunctionBytes() const;
};

// A larger config.json or generation_config.json is none.
inline constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;
// `json_text`: the file's contents.
absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json_text);

struct GenerationConfig {
  std::optional<int32_t> bos_token_id;
  std::vector<int32_t> eos_token_ids;
  std::vector<std::string> ignored;  // "temperature=0.2": recorded, never applied (the sweep decides)
};
// generation_config.json. Errors begin "generation_config.json: ".
absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view json_text);

}  // namespace iha::checkpoint
