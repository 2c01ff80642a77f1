#include "model/checkpoint/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "common/canonical.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "model/checkpoint/config_parts.h"
#include "model/checkpoint/json_fields.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;

constexpr int64_t kMaxIndexBytes = int64_t{256} << 20;
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

bool IsFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The forms that throw nothing: a path that cannot be looked at (too long, a loop of links) is not there for us.
bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Bit for bit after widening. False for dtypes that are no weights.
bool SameValues(const TensorView& a, const TensorView& b) {
  if (a.shape != b.shape || !IsFloat(a.dtype) || !IsFloat(b.dtype)) return false;
  if (a.dtype == b.dtype) return AsText(a.bytes) == AsText(b.bytes);
  constexpr int64_t kPiece = 1 << 14;
  std::vector<float> left(kPiece), right(kPiece);
  const auto widen = [](const TensorView& view, int64_t begin, std::span<float> out) {
    const auto size = static_cast<size_t>(SizeOf(view.dtype));
    const TensorView piece{view.dtype,
                           {static_cast<int64_t>(out.size())},
                           view.bytes.subspan(static_cast<size_t>(begin) * size, out.size() * size)};
    return WidenToF32(piece, out).ok();
  };
  for (int64_t begin = 0; begin < a.elements(); begin += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, a.elements() - begin));
    const std::span<float> of_a = std::span(left).first(count), of_b = std::span(right).first(count);
    if (!widen(a, begin, of_a) || !widen(b, begin, of_b)) return false;
    if (std::memcmp(of_a.data(), of_b.data(), of_a.size_bytes()) != 0) return false;
  }
  return true;
}

// A shard name is a plain file name below the folder: nothing that leads elsewhere.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& directory) {
  if (!IsFolder(directory)) {
    if (Exists(directory)) {
      return InvalidArgument("{}: is a file, expected a checkpoint's folder: give the folder that it lies in",
                             directory);
    }
    return NotFound("{}: no such folder (expected a checkpoint: config.json, model.safetensors, tokenizer.json)",
                    directory);
  }
  Checkpoint result;
  result.directory_ = directory;
  while (result.directory_.size() > 1 && result.directory_.back() == '/') result.directory_.pop_back();
  if (!Exists(directory + "/config.json")) {
    return NotFound("{}: has no config.json (expected a checkpoint: config.json, model.safetensors, tokenizer.json)",
                    directory);
  }
  absl::StatusOr<std::string> text = ReadRegularFile(directory + "/config.json", kMaxConfigBytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<ModelConfig> config = ParseModelConfig(*text);
  if (!config.ok()) return Annotate(config.status(), directory);
  result.config_ = *std::move(config);
  result.stated_context_ = result.config_.context_tokens;
  result.warnings_ = result.config_.warnings;

  const std::string generation_path = directory + "/generation_config.json";
  if (Exists(generation_path)) {
    IHA_ASSIGN_OR_RETURN(const std::string generation_text, ReadRegularFile(generation_path, kMaxConfigBytes));
    absl::StatusOr<GenerationConfig> generation = ParseGenerationConfig(generation_text);
    if (!generation.ok()) return Annotate(generation.status(), directory);
    result.generation_ = *std::move(generation);
  }
  if (result.generation_.eos_token_ids.empty()) result.generation_.eos_token_ids = result.config_.eos_token_ids;
  if (!result.generation_.bos_token_id.has_value()) result.generation_.bos_token_id = result.config_.bos_token_id;
  result.DropIdsBeyondVocabulary();
  IHA_RETURN_IF_ERROR(result.OpenWeights());
  IHA_RETURN_IF_ERROR(result.ReconcileTiedHead());
  IHA_RETURN_IF_ERROR(result.CheckTensors());
  return result;
}

absl::Status Checkpoint::ExtendContext(int64_t positions) {
  if (positions <= config_.context_tokens) return absl::OkStatus();
  ModelConfig extended = config_;
  extended.context_tokens = positions;
  if (const absl::Status exact = CheckPositions(extended); !exact.ok()) {
    return Annotate(exact, fmt::format("{}: beyond its context of {}", directory_, config_.context_tokens));
  }
  config_ = std::move(extended);
  return absl::OkStatus();
}

void Checkpoint::DropIdsBeyondVocabulary() {
  for (const int32_t id : std::exchange(generation_.eos_token_ids, {})) {
    if (id < config_.vocab_size) {
      generation_.eos_token_ids.push_back(id);
      continue;
    }
    warnings_.push_back(
        fmt::format("eos_token_id {} is not below vocab_size {}: no generation ends with it", id, config_.vocab_size));
  }
}

absl::Status Checkpoint::OpenWeights() {
  const std::string single = directory_ + "/model.safetensors", index = single + ".index.json";
  if (Exists(single)) return AddFile(single);
  if (Exists(index)) return OpenShards(index);
  if (Exists(directory_ + "/pytorch_model.bin")) {
    return InvalidArgument(
        "{}: has pytorch_model.bin only, expected model.safetensors: pickle is never read; convert it", directory_);
  }
  return NotFound("{}: has no model.safetensors and no model.safetensors.index.json; fetch the weights", directory_);
}

absl::Status Checkpoint::OpenShards(const std::string& index_path) {
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(index_path, kMaxIndexBytes));
  IHA_ASSIGN_OR_RETURN(const json index, ParseJsonObject(text, index_path));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return InvalidArgument("{}: weight_map is missing or empty, expected tensor names with their files", index_path);
  }
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !IsPlainFileName(file.get_ref<const std::string&>())) {
      return InvalidArgument("{}: weight_map {} is {}, expected the name of a file in the same folder", index_path,
                             Shown(tensor), ShownJson(file));
    }
    shards.insert(file.get<std::string>());
  }
  for (const std::string& shard : shards) {
    if (!Exists(directory_ + "/" + shard)) {
      return NotFound("{}: names the shard {}, which is not in the folder; fetch it", index_path, Shown(shard));
    }
    IHA_RETURN_IF_ERROR(AddFile(directory_ + "/" + shard));
  }
  for (const auto& [tensor, index_of_file] : file_of_) {
    if (!map->contains(tensor)) {
      warnings_.push_back(fmt::format("tensor {} lies in {}, but weight_map does not name it", Shown(tensor),
                                      files_[index_of_file].path()));
    }
  }
  for (const auto& [tensor, file] : map->items()) {
    const auto found = file_of_.find(tensor);
    if (found == file_of_.end() ||
        std::filesystem::path(files_[found->second].path()).filename() != file.get_ref<const std::string&>()) {
      return InvalidArgument("{}: weight_map says that {} holds {}, but there is no tensor of that name in it",
                             index_path, ShownJson(file), Shown(tensor));
    }
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::AddFile(const std::string& path) {
  IHA_ASSIGN_OR_RETURN(Safetensors file, Safetensors::Open(path));
  for (const auto& [name, view] : file.tensors()) {
    if (!tensors_.emplace(name, view).second) {
      return InvalidArgument("{}: tensor {} is in {} too, expected it once", path, Shown(name),
                             files_[file_of_.find(name)->second].path());
    }
    file_of_.emplace(name, files_.size());
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

// Writers that drop shared tensors may keep either name of a tied one. A head of its own beside the embedding is
// another model for transformers 5, the same for transformers 4: no one but its author knows which.
absl::Status Checkpoint::ReconcileTiedHead() {
  const auto head = tensors_.find(kHead), embedding = tensors_.find(kEmbedding);
  if (!config_.tied_embeddings || head == tensors_.end()) return absl::OkStatus();
  const size_t file = file_of_.find(kHead)->second;
  if (embedding == tensors_.end()) {
    tensors_.emplace(kEmbedding, head->second);
    file_of_.emplace(kEmbedding, file);
    return absl::OkStatus();
  }
  const bool same = SameValues(head->second, embedding->second);
  DropPages(head->second);
  DropPages(embedding->second);
  if (same) return absl::OkStatus();
  return InvalidArgument(
      "{}: tensor {} differs from {}, but the config ties them (tie_word_embeddings): set it to false in config.json "
      "if the head was trained apart, else remove the tensor",
      files_[file].path(), kHead, kEmbedding);
}

absl::Status Checkpoint::CheckTensors() {
  std::set<std::string, std::less<>> read;
  for (const TensorSpec& spec : RequiredTensors(config_)) {
    IHA_ASSIGN_OR_RETURN(const TensorView view, ExpectTensor(spec.name, spec.shape));
    parameters_ += view.elements();
    read.insert(spec.name);
  }
  for (const auto& [name, view] : tensors_) {
    // A stored copy of a tied head and the RoPE buffers of old files mean nothing.
    const bool harmless =
        (config_.tied_embeddings && name == kHead) || name.ends_with(".self_attn.rotary_emb.inv_freq");
    if (!read.contains(name) && !harmless) {
      warnings_.push_back(fmt::format("tensor {} is read by no layer of this config", Shown(name)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorView> Checkpoint::Tensor(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it != tensors_.end()) return it->second;
  const std::string where = files_.size() == 1 ? files_[0].path() : directory_ + "/model.safetensors.index.json";
  return NotFound("{}: tensor {} is missing (config.json calls for it)", where, name);
}

absl::StatusOr<TensorView> Checkpoint::ExpectTensor(std::string_view name, std::span<const int64_t> shape) const {
  absl::StatusOr<TensorView> view = Tensor(name);
  if (!view.ok()) {
    return NotFound("{}, expected shape {}; is the checkpoint complete, and config.json its own?",
                    std::string(view.status().message()), ShapeText(shape));
  }
  const std::string& file = files_[file_of_.find(name)->second].path();
  if (!std::equal(view->shape.begin(), view->shape.end(), shape.begin(), shape.end())) {
    return InvalidArgument("{}: tensor {} has shape {}, expected {} from config.json; are both of one checkpoint?",
                           file, name, ShapeText(view->shape), ShapeText(shape));
  }
  if (!IsFloat(view->dtype)) {
    return InvalidArgument("{}: tensor {} has dtype {}, expected F32, F16 or BF16; convert the checkpoint", file, name,
                           NameOf(view->dtype));
  }
  return view;
}

int DigestThreads(int threads, size_t tensors, int64_t bytes) {
  constexpr int64_t kBytesEach = int64_t{1} << 20;  // half a millisecond of hashing: ten times a thread's start
  const int64_t useful = std::min(static_cast<int64_t>(tensors), bytes / kBytesEach);
  return static_cast<int>(std::clamp<int64_t>(useful, 1, std::max(threads, 1)));
}

Digest Checkpoint::WeightsDigest(int threads) const {
  std::vector<TensorSpec> specs = RequiredTensors(config_);
  std::sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) { return a.name < b.name; });
  std::vector<Digest> digests(specs.size());
  int64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += static_cast<int64_t>(tensors_.find(spec.name)->second.bytes.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < specs.size(); i = next++) {
      digests[i] = Sha256Of(AsText(tensors_.find(specs[i].name)->second.bytes));
    }
  };
  {
    std::vector<std::jthread> helpers;
    const int helping = DigestThreads(threads, specs.size(), bytes) - 1;
    try {
      for (int i = 0; i < helping; ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // The system allows no more threads: fewer do the same.
    }
    work();
  }
  CanonicalWriter out("iha.checkpoint", 1);
  ModelConfig stated = config_;
  stated.context_tokens = stated_context_;
  out.String(stated.FunctionBytes()).List(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    const TensorView& view = tensors_.find(spec.name)->second;
    out.String(spec.name).String(NameOf(view.dtype)).List(spec.shape.size());
    for (const int64_t size : spec.shape) out.Int(size);
    out.Bytes(digests[i]);
  }
  return out.Hash();
}

void Checkpoint::DropPages() const {
  for (const Safetensors& file : files_) file.DropPages();
}

}  // namespace iha::checkpoint
