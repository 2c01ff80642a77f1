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

constexpr const char* kKnownArchitectures = "llama";

// GGUF stores float32; the author's decimal is the shortest that rounds to it (1e-05, not 9.999999747378752e-06).
double AuthorsDecimal(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

absl::Status RefuseUnsupported(const GgufFile& file) {
  IHA_ASSIGN_OR_RETURN(const int64_t splits, file.Integer("split.count", 1));
  if (splits > 1) {
    return InvalidArgument("{}: split.count is {}, expected a whole model in one file: join the parts first",
                           file.path(), splits);
  }
  IHA_ASSIGN_OR_RETURN(const int64_t experts, file.Integer("llama.expert_count", 0));
  if (experts > 0) {
    return InvalidArgument("{}: llama.expert_count is {}, expected 0: mixtures of experts are not supported",
                           file.path(), experts);
  }
  return absl::OkStatus();
}

absl::Status ReadRope(const GgufFile& file, GgufModel* model) {
  IHA_ASSIGN_OR_RETURN(model->rope_theta, file.Real("llama.rope.freq_base", 10000.0F));
  IHA_ASSIGN_OR_RETURN(const int64_t rotated, file.Integer("llama.rope.dimension_count", model->head_dim));
  if (rotated != model->head_dim) {
    return InvalidArgument("{}: llama.rope.dimension_count is {}, expected the head size {}", file.path(), rotated,
                           model->head_dim);
  }
  const std::string_view* scaling = file.Find<std::string_view>("llama.rope.scaling.type");
  if (scaling == nullptr || *scaling == "none") return absl::OkStatus();
  if (*scaling != "linear") {
    return InvalidArgument("{}: llama.rope.scaling.type is {}, expected none or linear; import the original checkpoint",
                           file.path(), TerminalSafe(*scaling, 200));
  }
  IHA_ASSIGN_OR_RETURN(model->rope_linear_factor, file.Real("llama.rope.scaling.factor"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufModel> ReadGgufModel(const GgufFile& file) {
  IHA_ASSIGN_OR_RETURN(const std::string_view architecture, file.Text("general.architecture"));
  if (architecture != "llama") {
    return InvalidArgument("{}: general.architecture is {}, which is not supported (expected one of: {})", file.path(),
                           TerminalSafe(architecture, 200), kKnownArchitectures);
  }
  IHA_RETURN_IF_ERROR(RefuseUnsupported(file));
  GgufModel model;
  IHA_ASSIGN_OR_RETURN(model.hidden_size, file.Integer("llama.embedding_length"));
  IHA_ASSIGN_OR_RETURN(model.intermediate_size, file.Integer("llama.feed_forward_length"));
  IHA_ASSIGN_OR_RETURN(model.num_layers, file.Integer("llama.block_count"));
  IHA_ASSIGN_OR_RETURN(model.num_heads, file.Integer("llama.attention.head_count"));
  IHA_ASSIGN_OR_RETURN(model.num_kv_heads, file.Integer("llama.attention.head_count_kv", model.num_heads));
  IHA_ASSIGN_OR_RETURN(model.context_tokens, file.Integer("llama.context_length"));
  IHA_ASSIGN_OR_RETURN(model.rms_norm_eps, file.Real("llama.attention.layer_norm_rms_epsilon"));
  if (model.num_heads <= 0 || model.num_kv_heads <= 0) {
    return InvalidArgument("{}: llama.attention.head_count is {} and head_count_kv {}, expected at least 1",
                           file.path(), model.num_heads, model.num_kv_heads);
  }
  IHA_ASSIGN_OR_RETURN(model.head_dim, file.Integer("llama.attention.key_length", model.hidden_size / model.num_heads));
  IHA_RETURN_IF_ERROR(ReadRope(file, &model));
  const auto embedding = file.tensors().find("token_embd.weight");
  if (embedding == file.tensors().end() || embedding->second.shape.size() != 2) {
    return InvalidArgument("{}: tensor token_embd.weight is missing or no matrix", file.path());
  }
  model.vocab_size = embedding->second.shape[0];
  model.tied = !file.tensors().contains("output.weight");
  model.attention_bias = file.tensors().contains("blk.0.attn_q.bias");
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
  config["architectures"] = {"LlamaForCausalLM"};
  config["model_type"] = "llama";
  config["vocab_size"] = model.vocab_size;
  config["hidden_size"] = model.hidden_size;
  config["intermediate_size"] = model.intermediate_size;
  config["num_hidden_layers"] = model.num_layers;
  config["num_attention_heads"] = model.num_heads;
  config["num_key_value_heads"] = model.num_kv_heads;
  config["head_dim"] = model.head_dim;
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = AuthorsDecimal(model.rms_norm_eps);
  config["rope_theta"] = AuthorsDecimal(model.rope_theta);
  config["rope_scaling"] = nullptr;
  if (model.rope_linear_factor != 0) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", AuthorsDecimal(model.rope_linear_factor)}};
  }
  config["attention_bias"] = model.attention_bias;
  config["mlp_bias"] = false;
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
