// Tokenizer metadata of a GGUF file as tokenizer.json and tokenizer_config.json.
#include <nlohmann/json.hpp>
#include <set>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/gguf/import_parts.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

// Values of tokenizer.ggml.token_type.
enum TokenType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

ordered_json ByteLevel(bool add_prefix_space) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
}

// tokenizer.ggml.pre -> pre_tokenizer. GGUF names the rule only; the rules are those of the models' own tokenizer.json.
absl::StatusOr<ordered_json> PreTokenizer(const GgufFile& file) {
  IHA_ASSIGN_OR_RETURN(const std::string_view model, file.Text("tokenizer.ggml.model"));
  if (model != "gpt2") {
    return InvalidArgument("{}: tokenizer.ggml.model is {}, which is not supported (expected one of: gpt2)",
                           file.path(), TerminalSafe(model, 200));
  }
  IHA_ASSIGN_OR_RETURN(const std::string_view pre, file.Text("tokenizer.ggml.pre"));
  if (pre != "smollm") {
    return InvalidArgument("{}: tokenizer.ggml.pre is {}, which is not supported (expected one of: smollm)",
                           file.path(), TerminalSafe(pre, 200));
  }
  return ordered_json{{"type", "Sequence"},
                      {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, ByteLevel(false)}}};
}

struct Vocabulary {
  const GgufStrings* tokens = nullptr;
  const GgufIntegers* types = nullptr;
  const GgufStrings* merges = nullptr;
};

absl::StatusOr<Vocabulary> ReadVocabulary(const GgufFile& file, int64_t vocab_size) {
  Vocabulary result{file.Find<GgufStrings>("tokenizer.ggml.tokens"),
                    file.Find<GgufIntegers>("tokenizer.ggml.token_type"),
                    file.Find<GgufStrings>("tokenizer.ggml.merges")};
  if (result.tokens == nullptr || result.types == nullptr || result.merges == nullptr) {
    return InvalidArgument("{}: tokenizer.ggml.tokens, token_type or merges is missing or of another type",
                           file.path());
  }
  if (static_cast<int64_t>(result.tokens->size()) != vocab_size || result.types->size() != result.tokens->size()) {
    return InvalidArgument("{}: {} tokens and {} token types, expected {} of each (rows of token_embd.weight)",
                           file.path(), result.tokens->size(), result.types->size(), vocab_size);
  }
  std::set<std::string_view> known;
  for (const std::string_view token : *result.tokens) {
    if (!IsValidUtf8(token)) {
      return InvalidArgument("{}: token {} is no UTF-8", file.path(), TerminalSafe(token, 200));
    }
    if (!known.insert(token).second) {
      return InvalidArgument("{}: token {} is in the vocabulary twice", file.path(), TerminalSafe(token, 200));
    }
  }
  for (const std::string_view merge : *result.merges) {
    const size_t space = merge.find(' ');
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = space == std::string_view::npos ? "" : merge.substr(space + 1);
    if (!known.contains(left) || !known.contains(right) || !known.contains(std::string(left) + std::string(right))) {
      return InvalidArgument("{}: merge {} is no pair of tokens whose join is a token", file.path(),
                             TerminalSafe(merge, 200));
    }
  }
  return result;
}

ordered_json AddedToken(std::string_view content, bool special) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", special}};
}

// BOS in front of every text, where the model wants it.
ordered_json BosTemplate(std::string_view token, int64_t id) {
  const ordered_json bos = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const auto sequence = [](const char* name, int type) {
    return ordered_json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  ordered_json result;
  result["type"] = "TemplateProcessing";
  result["single"] = ordered_json::array({bos, sequence("A", 0)});
  result["pair"] = ordered_json::array({bos, sequence("A", 0), bos, sequence("B", 1)});
  result["special_tokens"][std::string(token)] = {
      {"id", token}, {"ids", ordered_json::array({id})}, {"tokens", ordered_json::array({token})}};
  return result;
}

}  // namespace

absl::StatusOr<std::vector<TextFile>> TokenizerFiles(const GgufFile& file, const GgufModel& model) {
  IHA_ASSIGN_OR_RETURN(const ordered_json pre_tokenizer, PreTokenizer(file));
  IHA_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadVocabulary(file, model.vocab_size));
  ordered_json vocab = ordered_json::object(), added = ordered_json::array(), decoder_map = ordered_json::object();
  for (size_t i = 0; i < vocabulary.tokens->size(); ++i) {
    const std::string_view token = (*vocabulary.tokens)[i];
    const int64_t type = (*vocabulary.types)[i];
    // push_back of a pair: ordered_json's operator[] would search the whole list for each token.
    if (type != kUnused) vocab.get_ref<ordered_json::object_t&>().push_back({std::string(token), i});
    if (type != kControl && type != kUserDefined) continue;
    ordered_json entry = AddedToken(token, type == kControl);
    decoder_map[std::to_string(i)] = entry;
    ordered_json with_id = {{"id", i}};
    with_id.update(entry);
    added.push_back(std::move(with_id));
  }

  ordered_json settings;
  ordered_json post_processor = nullptr;
  settings["tokenizer_class"] = "PreTrainedTokenizerFast";
  settings["clean_up_tokenization_spaces"] = false;
  settings["model_max_length"] = model.context_tokens;
  const bool* add_bos = file.Find<bool>("tokenizer.ggml.add_bos_token");
  for (const auto& [role, name] : {std::pair{"bos", "bos_token"}, std::pair{"eos", "eos_token"},
                                   std::pair{"unknown", "unk_token"}, std::pair{"padding", "pad_token"}}) {
    IHA_ASSIGN_OR_RETURN(const std::optional<int64_t> id, SpecialTokenId(file, role, model.vocab_size));
    if (!id.has_value()) continue;
    const std::string_view token = (*vocabulary.tokens)[static_cast<size_t>(*id)];
    settings[name] = token;
    if (add_bos != nullptr && *add_bos && std::string_view(role) == "bos") post_processor = BosTemplate(token, *id);
  }
  settings["added_tokens_decoder"] = std::move(decoder_map);
  if (const std::string_view* chat = file.Find<std::string_view>("tokenizer.chat_template"); chat != nullptr) {
    if (!IsValidUtf8(*chat)) return InvalidArgument("{}: tokenizer.chat_template is no UTF-8", file.path());
    settings["chat_template"] = *chat;
  }

  ordered_json tokenizer;
  tokenizer["version"] = "1.0";
  tokenizer["truncation"] = nullptr;
  tokenizer["padding"] = nullptr;
  tokenizer["added_tokens"] = std::move(added);
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = pre_tokenizer;
  tokenizer["post_processor"] = std::move(post_processor);
  tokenizer["decoder"] = ByteLevel(true);
  ordered_json bpe;
  bpe["type"] = "BPE";
  bpe["dropout"] = nullptr;
  bpe["unk_token"] = nullptr;
  bpe["continuing_subword_prefix"] = nullptr;
  bpe["end_of_word_suffix"] = nullptr;
  bpe["fuse_unk"] = false;
  bpe["byte_fallback"] = false;
  bpe["ignore_merges"] = false;
  bpe["vocab"] = std::move(vocab);
  bpe["merges"] = *vocabulary.merges;
  tokenizer["model"] = std::move(bpe);
  return std::vector<TextFile>{{"tokenizer.json", tokenizer.dump(1) + "\n"},
                               {"tokenizer_config.json", settings.dump(2) + "\n"}};
}

}  // namespace iha::checkpoint
