// Metadata of a GGUF file as config.json and generation_config.json.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/gguf/import_parts.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

// GGUF stores float32; the author's decimal is the shortest that rounds to it (1e-05, not 9.999999747378752e-06).
double AuthorsDecimal(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

// Keys of settings that change the function and have no place in the checkpoint that is written; absent or zero is
// well.
constexpr const char* kRefusedCounts[] = {"expert_count", "nextn_predict_layers"};
constexpr const char* kRefusedReals[] = {
    "attn_logit_softcapping", "final_logit_softcapping", "attention.clamp_kqv", "attention.scale",
    "embedding_scale",        "residual_scale",          "logit_scale"};

absl::Status RefuseUnsupported(const GgufFile& file, const GgufArchitecture& architecture) {
  IHA_ASSIGN_OR_RETURN(const int64_t splits, file.Integer("split.count", 1));
  if (splits > 1) {
    return InvalidArgument("{}: split.count is {}, expected a whole model in one file: join the parts first",
                           file.path(), splits);
  }
  const auto refuse = [&file](const std::string& key, auto found) {
    return InvalidArgument("{}: {} is {}, expected 0 or none: this is not supported", file.path(), key, found);
  };
  for (const char* name : kRefusedCounts) {
    const std::string key = fmt::format("{}.{}", architecture.name, name);
    IHA_ASSIGN_OR_RETURN(const int64_t count, file.Integer(key, 0));
    if (count > 0) return refuse(key, count);
  }
  for (const char* name : kRefusedReals) {
    const std::string key = fmt::format("{}.{}", architecture.name, name);
    IHA_ASSIGN_OR_RETURN(const float value, file.Real(key, 0.0F));
    if (value != 0) return refuse(key, value);
  }
  const std::string window = fmt::format("{}.attention.sliding_window", architecture.name);
  if (!architecture.gemma && file.metadata().contains(window)) {
    IHA_ASSIGN_OR_RETURN(const int64_t size, file.Integer(window));
    if (size > 0) return refuse(window, size);
  }
  return absl::OkStatus();
}

// Which layers slide: the file says it as a period or a layer at a time; older ones leave it out (Gemma 3's is 6).
absl::Status ReadGemma(const GgufFile& file, GgufModel* model) {
  const std::string name = model->architecture->name, pattern = name + ".attention.sliding_window_pattern";
  IHA_ASSIGN_OR_RETURN(model->sliding_window, file.Integer(name + ".attention.sliding_window"));
  IHA_ASSIGN_OR_RETURN(model->rope_local_theta, file.Real(name + ".rope.freq_base_swa", 10000.0F));
  if (const auto* each = file.Find<GgufIntegers>(pattern); each != nullptr) {
    if (static_cast<int64_t>(each->size()) != model->num_layers) {
      return InvalidArgument("{}: {} has {} values, expected one for each of {} layers", file.path(), pattern,
                             each->size(), model->num_layers);
    }
    for (const int64_t slides : *each) model->sliding_layers.push_back(slides != 0);
  } else {
    IHA_ASSIGN_OR_RETURN(const int64_t period, file.Integer(pattern, 6));
    if (period < 1) return InvalidArgument("{}: {} is {}, expected at least 1", file.path(), pattern, period);
    for (int64_t l = 0; l < model->num_layers; ++l) model->sliding_layers.push_back((l + 1) % period != 0);
  }
  // As llama.cpp: the file does not say it, and of the published sizes only the 27B model (62 layers) differs.
  const bool by_hidden = model->num_layers == 62;
  model->query_pre_attn_scalar =
      static_cast<double>(by_hidden ? model->hidden_size / model->num_heads : model->head_dim);
  return absl::OkStatus();
}

absl::Status ReadShape(const GgufFile& file, GgufModel* model) {
  const std::string name = model->architecture->name;
  IHA_ASSIGN_OR_RETURN(model->hidden_size, file.Integer(name + ".embedding_length"));
  IHA_ASSIGN_OR_RETURN(model->intermediate_size, file.Integer(name + ".feed_forward_length"));
  IHA_ASSIGN_OR_RETURN(model->num_layers, file.Integer(name + ".block_count"));
  IHA_ASSIGN_OR_RETURN(model->num_heads, file.Integer(name + ".attention.head_count"));
  IHA_ASSIGN_OR_RETURN(model->num_kv_heads, file.Integer(name + ".attention.head_count_kv", model->num_heads));
  IHA_ASSIGN_OR_RETURN(model->context_tokens, file.Integer(name + ".context_length"));
  IHA_ASSIGN_OR_RETURN(model->rms_norm_eps, file.Real(name + ".attention.layer_norm_rms_epsilon"));
  if (model->num_heads <= 0 || model->num_kv_heads <= 0) {
    return InvalidArgument("{}: {}.attention.head_count is {} and head_count_kv {}, expected at least 1", file.path(),
                           name, model->num_heads, model->num_kv_heads);
  }
  // A layer has at least one tensor: what bounds the memory that a count can ask for.
  if (model->num_layers < 0 || static_cast<uint64_t>(model->num_layers) > file.tensors().size()) {
    return InvalidArgument("{}: {}.block_count is {}, expected at most the {} tensors of the file", file.path(), name,
                           model->num_layers, file.tensors().size());
  }
  IHA_ASSIGN_OR_RETURN(model->head_dim,
                       file.Integer(name + ".attention.key_length", model->hidden_size / model->num_heads));
  IHA_ASSIGN_OR_RETURN(const int64_t value_dim, file.Integer(name + ".attention.value_length", model->head_dim));
  if (value_dim != model->head_dim || model->head_dim < 2 || model->head_dim % 2 != 0 || model->head_dim > (1 << 20)) {
    return InvalidArgument("{}: {}.attention.key_length is {} and value_length {}, expected one even head size",
                           file.path(), name, model->head_dim, value_dim);
  }
  return absl::OkStatus();
}

ordered_json RopeScalingJson(const GgufModel& model) {
  ordered_json scaling;
  switch (model.rope_scaling) {
    case GgufRopeScaling::kNone:
      return nullptr;
    case GgufRopeScaling::kLinear:
      return {{"rope_type", "linear"}, {"factor", AuthorsDecimal(model.rope_factor)}};
    case GgufRopeScaling::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", AuthorsDecimal(model.rope_factor)},
              {"low_freq_factor", 1.0},
              {"high_freq_factor", 4.0},
              {"original_max_position_embeddings", model.rope_original_tokens}};
    case GgufRopeScaling::kYarn:
      scaling = {{"rope_type", "yarn"},
                 {"factor", AuthorsDecimal(model.rope_factor)},
                 {"original_max_position_embeddings", model.rope_original_tokens}};
      if (model.yarn_beta_fast.has_value()) scaling["beta_fast"] = AuthorsDecimal(*model.yarn_beta_fast);
      if (model.yarn_beta_slow.has_value()) scaling["beta_slow"] = AuthorsDecimal(*model.yarn_beta_slow);
      return scaling;
  }
  return nullptr;
}

void AddGemma(const GgufModel& model, ordered_json* config) {
  ordered_json types = ordered_json::array();
  for (const bool slides : model.sliding_layers) types.push_back(slides ? "sliding_attention" : "full_attention");
  (*config)["rope_local_base_freq"] = AuthorsDecimal(model.rope_local_theta);
  (*config)["sliding_window"] = model.sliding_window;
  (*config)["layer_types"] = std::move(types);
  (*config)["query_pre_attn_scalar"] = model.query_pre_attn_scalar;
}

}  // namespace

absl::StatusOr<GgufModel> ReadGgufModel(const GgufFile& file) {
  IHA_ASSIGN_OR_RETURN(const std::string_view architecture, file.Text("general.architecture"));
  GgufModel model;
  model.architecture = FindGgufArchitecture(architecture);
  if (model.architecture == nullptr) {
    return InvalidArgument("{}: general.architecture is {}, which is not supported (expected one of: {})", file.path(),
                           TerminalSafe(architecture, 200), KnownGgufArchitectures());
  }
  IHA_RETURN_IF_ERROR(RefuseUnsupported(file, *model.architecture));
  IHA_RETURN_IF_ERROR(ReadShape(file, &model));
  IHA_RETURN_IF_ERROR(ReadGgufRope(file, &model));
  if (model.architecture->gemma) IHA_RETURN_IF_ERROR(ReadGemma(file, &model));
  const auto embedding = file.tensors().find("token_embd.weight");
  if (embedding == file.tensors().end() || embedding->second.shape.size() != 2) {
    return InvalidArgument("{}: tensor token_embd.weight is missing or no matrix", file.path());
  }
  model.vocab_size = embedding->second.shape[0];
  model.tied = !file.tensors().contains("output.weight");
  model.attention_bias = file.tensors().contains("blk.0.attn_q.bias");
  model.mlp_bias = file.tensors().contains("blk.0.ffn_up.bias");
  return model;
}

absl::StatusOr<std::optional<int64_t>> SpecialTokenId(const GgufFile& file, const char* role, int64_t vocab_size) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
  if (!file.metadata().contains(key)) return std::optional<int64_t>();
  IHA_ASSIGN_OR_RETURN(const int64_t id, file.Integer(key));
  if (id < 0 || id >= vocab_size) {
    return InvalidArgument("{}: {} is {}, expected a token id below {}", file.path(), key, id, vocab_size);
  }
  return std::optional<int64_t>(id);
}

absl::StatusOr<std::vector<TextFile>> ConfigFiles(const GgufFile& file, const GgufModel& model, DType dtype) {
  IHA_ASSIGN_OR_RETURN(const std::optional<int64_t> bos, SpecialTokenId(file, "bos", model.vocab_size));
  IHA_ASSIGN_OR_RETURN(const std::optional<int64_t> eos, SpecialTokenId(file, "eos", model.vocab_size));
  IHA_ASSIGN_OR_RETURN(const std::optional<int64_t> pad, SpecialTokenId(file, "padding", model.vocab_size));
  IHA_ASSIGN_OR_RETURN(const std::optional<int64_t> turn, SpecialTokenId(file, "eot", model.vocab_size));
  const auto or_null = [](const std::optional<int64_t>& id) { return id.has_value() ? ordered_json(*id) : nullptr; };
  ordered_json config;
  const GgufArchitecture& architecture = *model.architecture;
  config["architectures"] = {architecture.transformers};
  config["model_type"] = architecture.model_type;
  config["vocab_size"] = model.vocab_size;
  config["hidden_size"] = model.hidden_size;
  config["intermediate_size"] = model.intermediate_size;
  config["num_hidden_layers"] = model.num_layers;
  config["num_attention_heads"] = model.num_heads;
  config["num_key_value_heads"] = model.num_kv_heads;
  config["head_dim"] = model.head_dim;
  if (architecture.gemma) {
    config["hidden_activation"] = "gelu_pytorch_tanh";
  } else {
    config["hidden_act"] = "silu";
  }
  config["rms_norm_eps"] = AuthorsDecimal(model.rms_norm_eps);
  config["rope_theta"] = AuthorsDecimal(model.rope_theta);
  config["rope_scaling"] = RopeScalingJson(model);
  if (architecture.gemma) AddGemma(model, &config);
  // Qwen 2 always has q, k and v biases; the field would mean something else.
  if (std::string_view(architecture.model_type) != "qwen2") config["attention_bias"] = model.attention_bias;
  if (architecture.permuted_qk) config["mlp_bias"] = model.mlp_bias;
  config["tie_word_embeddings"] = model.tied;
  config["max_position_embeddings"] = model.context_tokens;
  config["bos_token_id"] = or_null(bos);
  config["eos_token_id"] = or_null(eos);
  config["pad_token_id"] = or_null(pad);
  config["torch_dtype"] = dtype == DType::kBF16 ? "bfloat16" : "float32";

  ordered_json generation;
  generation["bos_token_id"] = or_null(bos);
  generation["eos_token_id"] = or_null(eos);
  // Chat models end a turn with a token of its own.
  if (eos.has_value() && turn.has_value() && *turn != *eos) generation["eos_token_id"] = {*eos, *turn};
  generation["pad_token_id"] = or_null(pad);
  return std::vector<TextFile>{{"config.json", config.dump(2) + "\n"},
                               {"generation_config.json", generation.dump(2) + "\n"}};
}

}  // namespace iha::checkpoint
