#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/errors.h"
#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/model_folder.h"
#include "model/fake_model.h"

namespace iha::model {
namespace {

using nlohmann::ordered_json;

constexpr int32_t kEos = 256;
constexpr char kEosText[] = "<|eos|>";
constexpr int32_t kMinVocab = 257;

std::string Utf8(uint32_t point) {
  if (point < 0x80) return std::string(1, static_cast<char>(point));
  return {static_cast<char>(0xc0 | point >> 6), static_cast<char>(0x80 | (point & 0x3f))};
}

// The byte-level alphabet: printable Latin-1 bytes stand for themselves, the others for U+0100 onwards, in order.
ordered_json ByteVocabulary() {
  ordered_json vocab = ordered_json::object();
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; byte++) {
    const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    vocab[Utf8(itself ? byte : next++)] = byte;
  }
  return vocab;
}

ordered_json TokenizerJson() {
  const ordered_json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const ordered_json eos = {{"id", kEos},      {"content", kEosText}, {"single_word", false}, {"lstrip", false},
                            {"rstrip", false}, {"normalized", false}, {"special", true}};
  const ordered_json bpe = {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"vocab", ByteVocabulary()},
                            {"merges", ordered_json::array()}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", ordered_json::array({eos})},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", bpe}};
}

constexpr char kChatTemplate[] =
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

absl::StatusOr<int64_t> Integer(const nlohmann::json& object, const char* path, const char* field) {
  const auto found = object.find(field);
  const std::optional<int64_t> number = found == object.end() ? std::nullopt : JsonInteger(*found);
  if (!number.has_value()) return InvalidArgument("{}: {} is missing or not an integer", path, field);
  return *number;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FakeModel>> FakeModel::Load(const std::string& dir, int64_t positions) {
  const std::string path = dir + "/config.json";
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, checkpoint::kMaxConfigBytes));
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object()) return InvalidArgument("{}: not a JSON object", path);
  if (!checkpoint::IsFakeFolder(dir)) {
    return InvalidArgument("{}: model_type is not {} (expected for the backend fake)", path,
                           checkpoint::kFakeModelType);
  }
  FakeOptions options;
  IHA_ASSIGN_OR_RETURN(const int64_t vocab, Integer(config, path.c_str(), "vocab_size"));
  IHA_ASSIGN_OR_RETURN(options.context_tokens, Integer(config, path.c_str(), "max_position_embeddings"));
  IHA_ASSIGN_OR_RETURN(const int64_t seed, Integer(config, path.c_str(), "fake_seed"));
  const auto style = config.find("fake_style");
  if (style == config.end() || (*style != "hash" && *style != "words")) {
    return InvalidArgument("{}: fake_style is missing or unknown (expected hash or words)", path);
  }
  options.style = *style == "words" ? FakeStyle::kWords : FakeStyle::kHash;
  if (vocab < kMinVocab || vocab > (1 << 20) || options.context_tokens < 1) {
    return InvalidArgument("{}: vocab_size {} (expected {} to 2^20) or max_position_embeddings {}", path, vocab,
                           kMinVocab, options.context_tokens);
  }
  options.vocab_size = static_cast<int32_t>(vocab);
  options.seed = static_cast<uint64_t>(seed);
  options.context_tokens = std::max(options.context_tokens, positions);
  return std::make_unique<FakeModel>(options, checkpoint::FakeWeightsDigest(text));
}

absl::Status MakeFakeCheckpoint(const std::string& dir, const FakeOptions& options) {
  const ordered_json config = {{"architectures", {"IhaFakeModel"}},
                               {"model_type", checkpoint::kFakeModelType},
                               {"vocab_size", options.vocab_size},
                               {"max_position_embeddings", options.context_tokens},
                               {"eos_token_id", kEos},
                               {"fake_seed", options.seed},
                               {"fake_style", options.style == FakeStyle::kWords ? "words" : "hash"}};
  const ordered_json generation = {{"eos_token_id", kEos}};
  const ordered_json tokenizer_config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                         {"eos_token", kEosText},
                                         {"model_max_length", options.context_tokens},
                                         {"chat_template", kChatTemplate}};
  IHA_RETURN_IF_ERROR(MakeFolders(dir));
  const std::pair<const char*, const ordered_json> files[] = {{"config.json", config},
                                                              {"generation_config.json", generation},
                                                              {"tokenizer_config.json", tokenizer_config},
                                                              {"tokenizer.json", TokenizerJson()}};
  for (const auto& [name, json] : files) {
    IHA_RETURN_IF_ERROR(WriteFileAtomic(dir + "/" + name, json.dump(2) + "\n"));
  }
  return absl::OkStatus();
}

}  // namespace iha::model
