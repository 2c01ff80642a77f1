// Tokenizer metadata of a GGUF file as tokenizer.json and tokenizer_config.json.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/gguf/import_parts.h"
#include "model/checkpoint/gguf/tokenizer_pipelines.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

// Values of tokenizer.ggml.token_type.
enum TokenType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// The file has a run of spaces as spaces; Gemma's tokenizer looks it up as U+2581.
std::string SpacesAsBlocks(std::string_view token) {
  if (token.empty() || token.find_first_not_of(' ') != std::string_view::npos) return std::string(token);
  std::string result;
  for (size_t i = 0; i < token.size(); ++i) result += "\xe2\x96\x81";
  return result;
}

// Merges of a small file can be long: "a" to "aaa..." has as many as the square of its tokens.
constexpr size_t kMaxMergeBytes = size_t{256} << 20;

struct Vocabulary {
  std::vector<std::string> tokens;
  const GgufIntegers* types = nullptr;
  const GgufStrings* merges = nullptr;  // null: to be recovered from `scores`
  std::vector<double> scores;
};

absl::Status CheckMerges(const GgufFile& file, const std::set<std::string_view>& known, const GgufStrings& merges) {
  for (const std::string_view merge : merges) {
    const size_t space = merge.find(' ');
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = space == std::string_view::npos ? "" : merge.substr(space + 1);
    if (!known.contains(left) || !known.contains(right) || !known.contains(std::string(left) + std::string(right))) {
      return InvalidArgument("{}: merge {} is no pair of tokens whose join is a token", file.path(),
                             TerminalSafe(merge, 200));
    }
  }
  return absl::OkStatus();
}

// Gemma's scores do not follow its merge order; the order of its tokens does.
absl::Status ReadScores(const GgufFile& file, GgufVocabularyKind kind, Vocabulary* vocabulary) {
  const size_t count = vocabulary->tokens.size();
  if (kind == GgufVocabularyKind::kGemma) {
    for (size_t i = 0; i < count; ++i) vocabulary->scores.push_back(-static_cast<double>(i));
    return absl::OkStatus();
  }
  const auto* scores = file.Find<GgufReals>("tokenizer.ggml.scores");
  if (scores == nullptr || scores->size() != count ||
      !std::all_of(scores->begin(), scores->end(), [](double score) { return std::isfinite(score); })) {
    return InvalidArgument("{}: tokenizer.ggml.scores is missing or not {} finite numbers, and there are no merges",
                           file.path(), count);
  }
  vocabulary->scores = *scores;
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> ReadVocabulary(const GgufFile& file, GgufVocabularyKind kind, int64_t vocab_size) {
  const auto* tokens = file.Find<GgufStrings>("tokenizer.ggml.tokens");
  Vocabulary result;
  result.types = file.Find<GgufIntegers>("tokenizer.ggml.token_type");
  IHA_ASSIGN_OR_RETURN(result.merges, file.Optional<GgufStrings>("tokenizer.ggml.merges", "list of strings"));
  if (tokens == nullptr || result.types == nullptr ||
      (result.merges == nullptr && kind == GgufVocabularyKind::kByteLevel)) {
    return InvalidArgument("{}: tokenizer.ggml.tokens, token_type or merges is missing or of another type",
                           file.path());
  }
  if (static_cast<int64_t>(tokens->size()) != vocab_size || result.types->size() != tokens->size()) {
    return InvalidArgument("{}: {} tokens and {} token types, expected {} of each (rows of token_embd.weight)",
                           file.path(), tokens->size(), result.types->size(), vocab_size);
  }
  result.tokens.assign(tokens->begin(), tokens->end());
  std::set<std::string_view> known;
  for (std::string& token : result.tokens) {
    if (!IsValidUtf8(token)) {
      return InvalidArgument("{}: token {} is no UTF-8", file.path(), TerminalSafe(token, 200));
    }
    if (kind == GgufVocabularyKind::kGemma) token = SpacesAsBlocks(token);
    if (!known.insert(token).second) {
      return InvalidArgument("{}: token {} is in the vocabulary twice", file.path(), TerminalSafe(token, 200));
    }
  }
  if (result.merges != nullptr) {
    IHA_RETURN_IF_ERROR(CheckMerges(file, known, *result.merges));
  } else {
    IHA_RETURN_IF_ERROR(ReadScores(file, kind, &result));
  }
  return result;
}

absl::StatusOr<ordered_json> MergesJson(const GgufFile& file, const Vocabulary& vocabulary) {
  if (vocabulary.merges != nullptr) return ordered_json(*vocabulary.merges);
  const auto merges = SentencePieceMerges(vocabulary.tokens, vocabulary.scores, kMaxMergeBytes);
  if (!merges.ok()) return Annotate(merges.status(), file.path());
  ordered_json result = ordered_json::array();
  for (const SentencePieceMerge& merge : *merges) result.push_back(ordered_json::array({merge.left, merge.right}));
  return result;
}

ordered_json AddedToken(std::string_view content, bool special) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", special}};
}

struct NamedToken {
  std::string token;
  int64_t id = 0;
};

// BOS in front of every text and EOS behind it, where the model wants them; null where it wants neither.
ordered_json Template(const std::optional<NamedToken>& bos, const std::optional<NamedToken>& eos) {
  if (!bos.has_value() && !eos.has_value()) return nullptr;
  ordered_json result;
  result["type"] = "TemplateProcessing";
  ordered_json single = ordered_json::array(), pair = ordered_json::array(), special = ordered_json::object();
  const auto add = [&special](const std::optional<NamedToken>& token, int type, ordered_json* sequence) {
    if (!token.has_value()) return;
    sequence->push_back({{"SpecialToken", {{"id", token->token}, {"type_id", type}}}});
    special[token->token] = {{"id", token->token},
                             {"ids", ordered_json::array({token->id})},
                             {"tokens", ordered_json::array({token->token})}};
  };
  for (const auto& [name, type] : {std::pair{"A", 0}, std::pair{"B", 1}}) {
    add(bos, type, &pair);
    pair.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
    add(eos, type, &pair);
    if (type == 0) single = pair;
  }
  result["single"] = std::move(single);
  result["pair"] = std::move(pair);
  result["special_tokens"] = std::move(special);
  return result;
}

// The tokens that have a role, by role.
absl::StatusOr<std::map<std::string_view, NamedToken>> ReadRoles(const GgufFile& file, const Vocabulary& vocabulary,
                                                                 int64_t vocab_size) {
  std::map<std::string_view, NamedToken> roles;
  for (const char* role : {"bos", "eos", "unknown", "padding"}) {
    IHA_ASSIGN_OR_RETURN(const std::optional<int64_t> id, SpecialTokenId(file, role, vocab_size));
    if (id.has_value()) roles[role] = {vocabulary.tokens[static_cast<size_t>(*id)], *id};
  }
  return roles;
}

// Index -> is it special; tokens that stay whole wherever they stand in a text.
std::map<size_t, bool> WholeTokens(const GgufTokenizerKind& kind, const Vocabulary& vocabulary,
                                   const std::map<std::string_view, NamedToken>& roles) {
  std::map<size_t, bool> whole;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const int64_t type = (*vocabulary.types)[i];
    // Runs of spaces are respelled, so transformers does not find them in the text either.
    const bool respelled =
        kind.vocabulary == GgufVocabularyKind::kGemma && vocabulary.tokens[i].starts_with("\xe2\x96\x81");
    if (type == kControl || (type == kUserDefined && !respelled)) whole[i] = type == kControl;
  }
  if (kind.vocabulary != GgufVocabularyKind::kByteLevel) {
    for (const auto& [role, token] : roles) whole[static_cast<size_t>(token.id)] = true;
  }
  return whole;
}

absl::StatusOr<ordered_json> Settings(const GgufFile& file, const GgufModel& model,
                                      const std::map<std::string_view, NamedToken>& roles, ordered_json added) {
  ordered_json settings;
  settings["tokenizer_class"] = "PreTrainedTokenizerFast";
  settings["clean_up_tokenization_spaces"] = false;
  settings["model_max_length"] = model.context_tokens;
  for (const auto& [role, name] : {std::pair{"bos", "bos_token"}, std::pair{"eos", "eos_token"},
                                   std::pair{"unknown", "unk_token"}, std::pair{"padding", "pad_token"}}) {
    if (const auto found = roles.find(role); found != roles.end()) settings[name] = found->second.token;
  }
  settings["added_tokens_decoder"] = std::move(added);
  IHA_ASSIGN_OR_RETURN(const std::string_view* chat,
                       file.Optional<std::string_view>("tokenizer.chat_template", "string"));
  if (chat != nullptr) {
    if (!IsValidUtf8(*chat)) return InvalidArgument("{}: tokenizer.chat_template is no UTF-8", file.path());
    settings["chat_template"] = *chat;
  }
  return settings;
}

}  // namespace

absl::StatusOr<std::vector<TextFile>> TokenizerFiles(const GgufFile& file, const GgufModel& model) {
  IHA_ASSIGN_OR_RETURN(const GgufTokenizerKind kind, ReadTokenizerKind(file, model));
  IHA_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadVocabulary(file, kind.vocabulary, model.vocab_size));
  IHA_ASSIGN_OR_RETURN(const auto roles, ReadRoles(file, vocabulary, model.vocab_size));
  ordered_json vocab = ordered_json::object(), added = ordered_json::array(), decoder_map = ordered_json::object();
  const bool drops_unused = kind.vocabulary == GgufVocabularyKind::kByteLevel;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    // push_back of a pair: ordered_json's operator[] would search the whole list for each token.
    if (!drops_unused || (*vocabulary.types)[i] != kUnused) {
      vocab.get_ref<ordered_json::object_t&>().push_back({vocabulary.tokens[i], i});
    }
  }
  for (const auto& [i, special] : WholeTokens(kind, vocabulary, roles)) {
    ordered_json entry = AddedToken(vocabulary.tokens[i], special);
    decoder_map.get_ref<ordered_json::object_t&>().push_back({std::to_string(i), entry});
    ordered_json with_id = {{"id", i}};
    with_id.update(entry);
    added.push_back(std::move(with_id));
  }
  IHA_ASSIGN_OR_RETURN(const ordered_json settings, Settings(file, model, roles, std::move(decoder_map)));

  IHA_ASSIGN_OR_RETURN(const bool* adds_bos, file.Optional<bool>("tokenizer.ggml.add_bos_token", "truth value"));
  IHA_ASSIGN_OR_RETURN(const bool* adds_eos, file.Optional<bool>("tokenizer.ggml.add_eos_token", "truth value"));
  const auto wanted = [&roles](const bool* flag, const char* role, bool fallback) {
    const auto found = roles.find(role);
    const bool yes = (flag == nullptr ? fallback : *flag) && found != roles.end();
    return yes ? std::optional(found->second) : std::nullopt;
  };
  ordered_json stages = TokenizerStages(kind);
  stages["model"]["vocab"] = std::move(vocab);
  IHA_ASSIGN_OR_RETURN(stages["model"]["merges"], MergesJson(file, vocabulary));
  if (kind.vocabulary != GgufVocabularyKind::kByteLevel && roles.contains("unknown")) {
    stages["model"]["unk_token"] = roles.at("unknown").token;
  }
  ordered_json tokenizer;
  tokenizer["version"] = "1.0";
  tokenizer["truncation"] = nullptr;
  tokenizer["padding"] = nullptr;
  tokenizer["added_tokens"] = std::move(added);
  tokenizer["normalizer"] = std::move(stages["normalizer"]);
  tokenizer["pre_tokenizer"] = std::move(stages["pre_tokenizer"]);
  tokenizer["post_processor"] = Template(wanted(adds_bos, "bos", kind.adds_bos), wanted(adds_eos, "eos", false));
  tokenizer["decoder"] = std::move(stages["decoder"]);
  tokenizer["model"] = std::move(stages["model"]);
  return std::vector<TextFile>{{"tokenizer.json", tokenizer.dump(1) + "\n"},
                               {"tokenizer_config.json", settings.dump(2) + "\n"}};
}

}  // namespace iha::checkpoint
