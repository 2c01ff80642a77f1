#include "model/tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/canonical.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

// Llama 3's file has 9 MB, Gemma 3's 33 MB.
constexpr int64_t kMaxFileBytes = int64_t{512} << 20;
constexpr const char* kVersion = "1.0";

absl::StatusOr<Json> ParseObject(std::string_view text, const std::string& file) {
  IHA_ASSIGN_OR_RETURN(Json value, ParseJson(text, file));
  if (!value.is_object()) return InvalidArgument("{}: found {}, expected an object", file, JsonKind(value));
  return value;
}

const Json& FieldOrNull(const Json& object, const char* key) {
  static const Json null;
  const Json* value = Find(object, key);
  return value == nullptr ? null : *value;
}

struct Config {
  ChatTemplates chat;
  SpecialTexts special;
};

// A special token is written as its text or as an object with "content".
absl::StatusOr<std::string> SpecialText(const Json& config, const char* key) {
  const Json* value = Find(config, key);
  if (value != nullptr && value->is_object()) return GetString(*value, "content", key);
  return GetString(config, key, "");
}
const std::string& TextOf(const SpecialTexts& texts, const std::string& name) {
  static const std::string none;
  const auto it = texts.find(name);
  return it == texts.end() ? none : it->second;
}

// "chat_template" is a text, or several by name: a list of {name, template}, or an object.
absl::StatusOr<ChatTemplates> ParseTemplates(const Json& config) {
  ChatTemplates chat;
  const Json* value = Find(config, "chat_template");
  const auto keep = [&](std::string_view name, std::string text) {
    if (name == "default") chat.text = std::move(text);
    if (name == "tool_use") chat.tool_use = std::move(text);
  };
  if (value == nullptr || !value->is_structured()) {
    IHA_ASSIGN_OR_RETURN(chat.text, GetString(config, "chat_template", "", ""));
  } else if (value->is_object()) {
    for (const auto& [name, text] : value->items()) {
      IHA_ASSIGN_OR_RETURN(std::string source, GetString(*value, name.c_str(), "chat_template"));
      keep(name, std::move(source));
    }
  } else {
    for (size_t i = 0; i < value->size(); ++i) {
      const std::string field = fmt::format("chat_template[{}]", i);
      IHA_RETURN_IF_ERROR(ExpectObject((*value)[i], field));
      IHA_ASSIGN_OR_RETURN(const std::string name, GetString((*value)[i], "name", field));
      IHA_ASSIGN_OR_RETURN(std::string source, GetString((*value)[i], "template", field));
      keep(name, std::move(source));
    }
  }
  return chat;
}

absl::StatusOr<std::optional<std::string>> ReadIfThere(const std::string& path) {
  absl::StatusOr<std::string> text = ReadRegularFile(path, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  if (!IsValidUtf8(*text)) return InvalidArgument("{}: is not UTF-8; fetch it again", path);
  return *std::move(text);
}

absl::StatusOr<Config> ParseConfig(const Json& json) {
  Config config;
  IHA_ASSIGN_OR_RETURN(config.chat, ParseTemplates(json));
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    if (Find(json, key) == nullptr) continue;
    IHA_ASSIGN_OR_RETURN(config.special[key], SpecialText(json, key));
  }
  return config;
}

}  // namespace

struct Tokenizer::Impl {
  Config config;
  Digest digest;
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const PreTokenizer> pre_tokenizer;
  std::unique_ptr<const Bpe> bpe;
  AddedTokens added;
  PostProcessor post_processor;
  DecoderSpec decoder;

  absl::Status Parse(const Json& json);
  // Added tokens and normalized text between them.
  Pieces Segment(std::string_view valid, bool parse_special) const;
  void AppendNormalized(std::string text, bool at_start, bool parse_special, Pieces* pieces) const;
  // What the decoder is given for `id`; nullptr: nothing.
  const std::string* DecodedText(int32_t id, bool skip_special) const;
};

absl::Status Tokenizer::Impl::Parse(const Json& json) {
  IHA_ASSIGN_OR_RETURN(const std::string version, GetString(json, "version", "", kVersion));
  if (version != kVersion) return Unsupported("version", version, {kVersion});
  IHA_ASSIGN_OR_RETURN(bpe, Bpe::Parse(FieldOrNull(json, "model"), "model"));
  IHA_ASSIGN_OR_RETURN(normalizer, Normalizer::Parse(FieldOrNull(json, "normalizer"), "normalizer"));
  IHA_ASSIGN_OR_RETURN(added, AddedTokens::Parse(FieldOrNull(json, "added_tokens"), *bpe, normalizer.get()));
  IHA_ASSIGN_OR_RETURN(pre_tokenizer, PreTokenizer::Parse(FieldOrNull(json, "pre_tokenizer"), "pre_tokenizer"));
  IHA_ASSIGN_OR_RETURN(post_processor, PostProcessor::Parse(FieldOrNull(json, "post_processor"), "post_processor"));
  IHA_ASSIGN_OR_RETURN(decoder, DecoderSpec::Parse(FieldOrNull(json, "decoder"), "decoder"));
  return absl::OkStatus();
}

void Tokenizer::Impl::AppendNormalized(std::string text, bool at_start, bool parse_special, Pieces* pieces) const {
  size_t origin = at_start ? FirstChar(text).length : 0;
  if (normalizer != nullptr) text = normalizer->Apply(std::move(text), at_start ? &origin : nullptr);
  std::vector<AddedPart> parts;
  added.Cut(text, AddedTokens::Kind::kNormalized, parse_special, &parts);
  const size_t base = pieces->text.size();
  for (const AddedPart& part : parts) {
    pieces->pieces.push_back(
        {base + part.begin, base + part.end, part.id, std::min(origin, part.end) - std::min(origin, part.begin)});
  }
  pieces->text += text;
}

Pieces Tokenizer::Impl::Segment(std::string_view valid, bool parse_special) const {
  Pieces pieces;
  std::vector<AddedPart> parts;
  added.Cut(valid, AddedTokens::Kind::kRaw, parse_special, &parts);
  for (const AddedPart& part : parts) {
    if (part.id >= 0) {
      pieces.pieces.push_back({pieces.text.size(), pieces.text.size(), part.id, 0});
    } else {
      AppendNormalized(std::string(valid.substr(part.begin, part.end - part.begin)), part.begin == 0, parse_special,
                       &pieces);
    }
  }
  return pieces;
}

const std::string* Tokenizer::Impl::DecodedText(int32_t id, bool skip_special) const {
  if (const AddedToken* token = added.ById(id)) return token->skipped && skip_special ? nullptr : &token->decoded;
  return bpe->TokenText(id);
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Build(std::string_view tokenizer_json,
                                                                  std::string_view config_json,
                                                                  std::optional<ChatTemplates> template_files,
                                                                  const std::string& prefix) {
  auto impl = std::make_unique<Impl>();
  {
    IHA_ASSIGN_OR_RETURN(const Json json, ParseObject(tokenizer_json, prefix + "tokenizer.json"));
    IHA_RETURN_IF_ERROR(Annotate(impl->Parse(json), prefix + "tokenizer.json"));
  }
  if (!config_json.empty()) {
    IHA_ASSIGN_OR_RETURN(const Json json, ParseObject(config_json, prefix + "tokenizer_config.json"));
    absl::StatusOr<Config> config = ParseConfig(json);
    if (!config.ok()) return Annotate(config.status(), prefix + "tokenizer_config.json");
    impl->config = *std::move(config);
  }
  if (template_files.has_value()) impl->config.chat = *std::move(template_files);
  CanonicalWriter writer("iha.tokenizer", 1);
  writer.String(tokenizer_json).String(impl->config.chat.text).List(impl->config.special.size());
  for (const auto& [name, text] : impl->config.special) writer.String(name).String(text);
  if (!impl->config.chat.tool_use.empty()) writer.String(impl->config.chat.tool_use);
  impl->digest = writer.Hash();
  return std::unique_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::FromJson(std::string_view tokenizer_json,
                                                                     std::string_view config_json) {
  return Build(tokenizer_json, config_json, std::nullopt, "");
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(const std::string& dir) {
  const absl::StatusOr<std::string> json = ReadRegularFile(dir + "/tokenizer.json", kMaxFileBytes);
  std::error_code error;
  if (!json.ok() && !std::filesystem::is_directory(dir, error)) {
    return NotFound("{}: no such folder (expected a checkpoint: config.json, model.safetensors, tokenizer.json)", dir);
  }
  if (absl::IsNotFound(json.status())) {
    return NotFound("{}/tokenizer.json: missing (expected a Hugging Face tokenizer file); import or copy it", dir);
  }
  if (!json.ok()) return json.status();
  const absl::StatusOr<std::string> config = ReadRegularFile(dir + "/tokenizer_config.json", kMaxFileBytes);
  if (!config.ok() && !absl::IsNotFound(config.status())) return config.status();
  if (config.ok() && config->empty()) {
    return InvalidArgument("{}/tokenizer_config.json: is empty; fetch it again, or remove it", dir);
  }
  std::optional<ChatTemplates> chat;
  IHA_ASSIGN_OR_RETURN(std::optional<std::string> source, ReadIfThere(dir + "/chat_template.jinja"));
  if (source.has_value()) {
    chat.emplace().text = *std::move(source);
    IHA_ASSIGN_OR_RETURN(source, ReadIfThere(dir + "/additional_chat_templates/tool_use.jinja"));
    chat->tool_use = std::move(source).value_or("");
  }
  return Build(*json, config.ok() ? *config : std::string(), std::move(chat), dir + "/");
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  std::string valid;
  valid.reserve(text.size());
  AppendLossy(text, /*final=*/true, &valid);
  Pieces pieces = impl_->Segment(valid, options.parse_special);
  if (impl_->pre_tokenizer != nullptr) impl_->pre_tokenizer->Run(&pieces);
  std::vector<int32_t> ids;
  ids.reserve(valid.size() / 3 + 8);
  Bpe::Scratch scratch;
  for (const Piece& piece : pieces.pieces) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
    } else {
      impl_->bpe->Encode(pieces.View(piece), &scratch, &ids);
    }
  }
  return impl_->post_processor.Apply(std::move(ids), options.add_special);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  DecodeChain chain(impl_->decoder);
  for (const int32_t id : ids) {
    if (const std::string* text = impl_->DecodedText(id, skip_special)) chain.Token(*text);
  }
  chain.Finish();
  return chain.Take();
}

int32_t Tokenizer::vocab_size() const { return std::max(impl_->bpe->id_limit(), impl_->added.id_limit()); }

const Digest& Tokenizer::digest() const { return impl_->digest; }

std::optional<int32_t> Tokenizer::TokenId(std::string_view token) const {
  if (const std::optional<int32_t> id = impl_->added.TokenId(token)) return id;
  return impl_->bpe->TokenId(token);
}

std::optional<std::string> Tokenizer::TokenText(int32_t id) const {
  if (const AddedToken* token = impl_->added.ById(id)) return token->content;
  const std::string* text = impl_->bpe->TokenText(id);
  if (text == nullptr) return std::nullopt;
  return *text;
}

bool Tokenizer::IsSpecial(int32_t id) const {
  const AddedToken* token = impl_->added.ById(id);
  return token != nullptr && token->special;
}

const ChatTemplates& Tokenizer::chat_templates() const { return impl_->config.chat; }
const SpecialTexts& Tokenizer::special_texts() const { return impl_->config.special; }
const std::string& Tokenizer::bos_token() const { return TextOf(impl_->config.special, "bos_token"); }
const std::string& Tokenizer::eos_token() const { return TextOf(impl_->config.special, "eos_token"); }

struct DecodeStream::State {
  State(const Tokenizer::Impl& tokenizer, bool skip) : impl(tokenizer), skip_special(skip), chain(tokenizer.decoder) {}
  const Tokenizer::Impl& impl;
  const bool skip_special;
  DecodeChain chain;
};

DecodeStream::DecodeStream(const Tokenizer& tokenizer, bool skip_special)
    : state_(std::make_unique<State>(*tokenizer.impl_, skip_special)) {}
DecodeStream::~DecodeStream() = default;
DecodeStream::DecodeStream(DecodeStream&&) noexcept = default;
DecodeStream& DecodeStream::operator=(DecodeStream&&) noexcept = default;

std::string DecodeStream::Push(int32_t id) {
  if (const std::string* text = state_->impl.DecodedText(id, state_->skip_special)) state_->chain.Token(*text);
  return state_->chain.Take();
}

std::string DecodeStream::Flush() {
  state_->chain.Finish();
  return state_->chain.Take();
}

}  // namespace iha::tokenizer
