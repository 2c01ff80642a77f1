#include "model/checkpoint/upcycle.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/config_json.h"
#include "model/checkpoint/temporary_folder.h"
#include "model/checkpoint/upcycle_mixers.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

constexpr int kUpcycleVersion = 2;         // raise when equal arguments would give other bytes
constexpr int64_t kMaxPseudoHeads = 4096;  // as the config allows
constexpr double kMaxNoise = 1e6;
constexpr int64_t kMaxTextBytes = int64_t{1} << 30;
// How text becomes ids and generations end: as the source says. Absent ones are absent in the copy.
constexpr const char* kCopiedFiles[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "generation_config.json"};

// One tensor of the result.
struct Part {
  TensorPlan plan;
  size_t file = 0;                   // of the source: the result is cut in the same places
  const TensorView* from = nullptr;  // copied, its blocks of rows repeated `repeats` times; null: made here
  int64_t repeats = 1;
  int64_t layer = 0;  // of a mixer
  std::optional<Mixer> mixer;
};

absl::StatusOr<LayerSpec> UpcycledLayer(const LayerSpec& layer, size_t index, const UpcycleOptions& options) {
  if (layer.kind != AttentionKind::kGlobal && layer.kind != AttentionKind::kLocal) {
    return InvalidArgument(
        "config.json: layer {} is {}, expected global or local to make iha of it: leave it out with --layers", index,
        NameOf(layer.kind));
  }
  LayerSpec result = layer;  // window (tokens), rope, pairing and modifiers mean the same there
  result.kind = AttentionKind::kIha;
  if (layer.qk_norm == QkNorm::kPreRope) result.qk_norm = QkNorm::kPreMix;
  result.pseudo_heads = options.pseudo_heads;
  result.alpha_layout = options.alpha_layout;
  result.collapse = options.collapse;
  result.mask = IhaMask::kTokenCausal;
  result.rope_positions = IhaPositions::kToken;
  return result;
}

absl::Status ExpandKv(const UpcycleOptions& options, ModelConfig* config) {
  if (config->num_kv_heads == config->num_heads) return absl::OkStatus();
  if (!options.expand_kv) {
    return InvalidArgument(
        "config.json: num_key_value_heads is {}, but kind iha needs as many as num_attention_heads {}: add "
        "--expand-kv, which repeats each key and value head {} times",
        config->num_kv_heads, config->num_heads, config->num_heads / config->num_kv_heads);
  }
  for (size_t l = 0; l < config->layers.size(); ++l) {
    if (config->layers[l].kind != AttentionKind::kDiffV2) continue;
    return InvalidArgument(
        "config.json: layer {} is diff_v2, whose head pairs share a key head; with --expand-kv, which holds for the "
        "whole model, they would not",
        l);
  }
  config->num_kv_heads = config->num_heads;
  return absl::OkStatus();
}

std::optional<Mixer> MixerOf(const std::string& name) {
  if (name.ends_with(".iha.alpha_q")) return Mixer::kAlphaQ;
  if (name.ends_with(".iha.alpha_k")) return Mixer::kAlphaK;
  if (name.ends_with(".iha.alpha_v")) return Mixer::kAlphaV;
  if (name.ends_with(".iha.collapse")) return Mixer::kCollapse;
  return std::nullopt;
}

// Layer index of "model.layers.12.…".
int64_t LayerOf(const std::string& name) {
  return std::strtoll(name.c_str() + sizeof("model.layers.") - 1, nullptr, 10);
}

std::vector<Part> PlanParts(const Checkpoint& source, const ModelConfig& config) {
  // The source may hold tensors that its own config never reads: these are no part of its function.
  std::set<std::string> read;
  for (const TensorSpec& spec : RequiredTensors(source.config())) read.insert(spec.name);
  std::vector<Part> parts;
  for (const TensorSpec& spec : RequiredTensors(config)) {
    Part part;
    part.plan = {spec.name, DType::kF32, spec.shape};
    if (const auto found = source.tensors().find(spec.name);
        found != source.tensors().end() && read.contains(spec.name)) {
      part.from = &found->second;
      part.file = source.FileOf(spec.name);
      part.plan.dtype = part.from->dtype;
      part.repeats = spec.shape[0] / part.from->shape[0];
    } else {
      // A mixer, or the zero bias of an o_proj that had none: it lies beside the layer's projections.
      part.layer = LayerOf(spec.name);
      part.mixer = MixerOf(spec.name);
      const std::string beside = fmt::format("model.layers.{}.self_attn.q_proj.weight", part.layer);
      part.file = source.FileOf(beside);
      if (!part.mixer.has_value()) part.plan.dtype = source.tensors().find(beside)->second.dtype;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// kv_heads: of the source.
absl::Status CopyPart(const Part& part, int64_t kv_heads, SafetensorsWriter& writer) {
  if (part.repeats == 1) return writer.Append(part.from->bytes);
  const size_t head_bytes = part.from->bytes.size() / static_cast<size_t>(kv_heads);
  for (int64_t head = 0; head < kv_heads; ++head) {
    const auto rows = part.from->bytes.subspan(static_cast<size_t>(head) * head_bytes, head_bytes);
    for (int64_t i = 0; i < part.repeats; ++i) IHA_RETURN_IF_ERROR(writer.Append(rows));
  }
  return absl::OkStatus();
}

absl::Status MakePart(const Part& part, const ModelConfig& config, const UpcycleOptions& options,
                      SafetensorsWriter& writer) {
  if (!part.mixer.has_value()) {
    const std::vector<std::byte> zeros(static_cast<size_t>(part.plan.shape[0] * SizeOf(part.plan.dtype)));
    return writer.Append(zeros);
  }
  const LayerSpec& spec = config.layers[static_cast<size_t>(part.layer)];
  for (int64_t row = 0; row < part.plan.shape[0]; ++row) {
    const std::vector<float> values = MixerRow(options, spec, config.num_heads, part.layer, *part.mixer, row);
    IHA_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(values))));
  }
  return absl::OkStatus();
}

absl::Status WriteShard(const Checkpoint& source, const ModelConfig& config, const UpcycleOptions& options,
                        const std::vector<const Part*>& parts, const std::string& path) {
  std::vector<TensorPlan> plan;
  for (const Part* part : parts) plan.push_back(part->plan);
  IHA_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, plan, {{"format", "pt"}}));
  writer.StopWhen(options.stop);
  for (const Part* part : parts) {
    if (part->from == nullptr) {
      IHA_RETURN_IF_ERROR(MakePart(*part, config, options, writer));
    } else {
      IHA_RETURN_IF_ERROR(CopyPart(*part, source.config().num_kv_heads, writer));
      source.DropPages();  // what has been copied is not needed again
    }
  }
  return writer.Finish();
}

absl::Status WriteWeights(const Checkpoint& source, const ModelConfig& config, const UpcycleOptions& options,
                          const std::string& folder) {
  const std::vector<Part> parts = PlanParts(source, config);
  std::map<size_t, std::vector<const Part*>> shards;
  for (const Part& part : parts) shards[part.file].push_back(&part);
  const bool single = source.files().size() == 1;
  ordered_json map = ordered_json::object();
  int64_t total = 0;
  for (const auto& [file, members] : shards) {
    const std::string name =
        single ? "model.safetensors" : std::filesystem::path(source.files()[file].path()).filename().string();
    IHA_RETURN_IF_ERROR(WriteShard(source, config, options, members, fmt::format("{}/{}", folder, name)));
    for (const Part* part : members) {
      map[part->plan.name] = name;
      int64_t bytes = SizeOf(part->plan.dtype);
      for (const int64_t size : part->plan.shape) bytes *= size;
      total += bytes;
    }
  }
  if (single) return absl::OkStatus();
  const ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  return WriteFileAtomic(fmt::format("{}/model.safetensors.index.json", folder),
                         index.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

absl::Status CopyTextFiles(const std::string& from, const std::string& to) {
  for (const char* name : kCopiedFiles) {
    const absl::StatusOr<std::string> text = ReadRegularFile(fmt::format("{}/{}", from, name), kMaxTextBytes);
    if (absl::IsNotFound(text.status())) continue;
    IHA_RETURN_IF_ERROR(text.status());
    IHA_RETURN_IF_ERROR(WriteFileAtomic(fmt::format("{}/{}", to, name), *text));
  }
  return absl::OkStatus();
}

std::string RecordText(const Digest& source, const UpcycleOptions& options, const std::vector<int64_t>& layers) {
  ordered_json record = {{"upcycle", kUpcycleVersion},
                         {"source_digest", source.Hex()},
                         {"kind", "iha"},
                         {"pseudo_heads", options.pseudo_heads}};
  record["layers"] = layers;
  record["alpha_layout"] = NameOf(options.alpha_layout);
  record["collapse"] = NameOf(options.collapse);
  record["expand_kv"] = options.expand_kv;
  record["noise"] = options.noise;
  record["seed"] = options.seed;
  return record.dump(2) + "\n";
}

absl::Status WriteFolder(const Checkpoint& source, const ModelConfig& config, const UpcycleOptions& options,
                         const std::string& record, const std::string& folder) {
  IHA_ASSIGN_OR_RETURN(const std::string config_text, LlamaConfigJson(config));
  IHA_RETURN_IF_ERROR(CopyTextFiles(source.directory(), folder));
  IHA_RETURN_IF_ERROR(WriteFileAtomic(fmt::format("{}/config.json", folder), config_text));
  IHA_RETURN_IF_ERROR(WriteFileAtomic(fmt::format("{}/upcycle.json", folder), record));
  return WriteWeights(source, config, options, folder);
}

}  // namespace

absl::StatusOr<ModelConfig> UpcycledConfig(const ModelConfig& source, const UpcycleOptions& options) {
  if (options.pseudo_heads < 1 || options.pseudo_heads > kMaxPseudoHeads) {
    return InvalidArgument("--pseudo-heads is {}, expected 1 to {}", options.pseudo_heads, kMaxPseudoHeads);
  }
  if (!(options.noise >= 0 && options.noise <= kMaxNoise)) {
    return InvalidArgument("--noise is {}, expected a number from 0 to {}", options.noise, kMaxNoise);
  }
  ModelConfig config = source;
  if (source.family != Family::kGemma3Text) config.family = Family::kLlama;
  config.has_iha_eval = true;
  config.o_bias = config.o_bias || config.qkv_bias;  // zeros are added where only q, k and v have one
  IHA_RETURN_IF_ERROR(LlamaConfigJson(config).status());
  std::vector<int64_t> chosen;
  if (options.layers.has_value()) {
    chosen = *options.layers;
  } else {
    for (int64_t l = 0; l < source.num_layers(); ++l) chosen.push_back(l);
  }
  for (const int64_t l : chosen) {
    if (l < 0 || l >= source.num_layers()) {
      return InvalidArgument("--layers names layer {}, expected 0 to {}", l, source.num_layers() - 1);
    }
    const auto index = static_cast<size_t>(l);
    IHA_ASSIGN_OR_RETURN(config.layers[index], UpcycledLayer(source.layers[index], index, options));
  }
  IHA_RETURN_IF_ERROR(ExpandKv(options, &config));
  return config;
}

absl::StatusOr<UpcycleResult> Upcycle(const std::string& model, const std::string& out, const UpcycleOptions& options) {
  const std::string target = NormalFolder(out);
  if (IsTaken(target)) return AlreadyExists("{}: exists already: remove it or choose another --out", target);
  IHA_ASSIGN_OR_RETURN(const Checkpoint source, Checkpoint::Open(model));
  absl::StatusOr<ModelConfig> config = UpcycledConfig(source.config(), options);
  if (!config.ok()) return Annotate(config.status(), model);

  UpcycleResult result;
  std::vector<int64_t> layers;
  for (size_t l = 0; l < config->layers.size(); ++l) {
    if (config->layers[l] != source.config().layers[l]) layers.push_back(static_cast<int64_t>(l));
  }
  result.layers = static_cast<int64_t>(layers.size());
  result.source = source.WeightsDigest();
  IHA_ASSIGN_OR_RETURN(TemporaryFolder temporary, TemporaryFolder::Create(target));
  const std::string record = RecordText(result.source, options, layers);
  IHA_RETURN_IF_ERROR(WriteFolder(source, *config, options, record, temporary.path()));
  IHA_ASSIGN_OR_RETURN(const Checkpoint written, Checkpoint::Open(temporary.path()));
  if (written.config().FunctionBytes() != config->FunctionBytes()) {
    return Internal("{}: the written config.json says another function than was planned", target);
  }
  result.parameters = written.parameters();
  result.digest = written.WeightsDigest();
  IHA_RETURN_IF_ERROR(temporary.Commit());
  return result;
}

}  // namespace iha::checkpoint
