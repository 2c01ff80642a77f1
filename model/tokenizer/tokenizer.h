// tokenizer.h: text to token ids and back, equal to Hugging Face `tokenizers` for the same tokenizer.json.
//
// What: reads tokenizer.json (added tokens, normalizer, pre-tokenizer, BPE model, post-processor, decoder) and, for the
// chat template and the bos/eos texts, tokenizer_config.json. tokenizer.json rules: class names and add_bos flags of
// the config change nothing, and its truncation and padding blocks are ignored (callers bound lengths themselves).
// Thread: a Tokenizer is immutable after loading; every method may be called from any thread at once (encoding keeps a
// word cache that never blocks a caller). A DecodeStream belongs to one thread and must not outlive its Tokenizer.
// Errors: NotFound (no tokenizer.json), InvalidArgument (malformed file, or a component that is not supported: the
// message names the field). Encoding and decoding cannot fail.
// Source: huggingface/tokenizers 0.23, its Rust semantics component by component.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/digest.h"

namespace iha::tokenizer {

struct EncodeOptions {
  // Runs the post-processor (BOS, EOS and the like), as add_special_tokens=True does.
  bool add_special = false;
  // false: the text of special tokens is ordinary text. Added tokens that are not special are parsed always.
  bool parse_special = true;
};

// Texts of a checkpoint's special tokens by their name in tokenizer_config.json: "bos_token", "eos_token", ...
using SpecialTexts = std::map<std::string, std::string>;

// Jinja sources. `text` is "" if the checkpoint has none, `tool_use` unless it has one of that name.
struct ChatTemplates {
  std::string text;
  std::string tool_use;
};

class DecodeStream;

class Tokenizer {
 public:
  using EncodeOptions = tokenizer::EncodeOptions;

  // Reads DIR/tokenizer.json, DIR/tokenizer_config.json (optional) and DIR/chat_template.jinja (optional; with
  // additional_chat_templates/tool_use.jinja it wins over the config's templates as in transformers). Blocking reads.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Load(const std::string& dir);
  // The same from memory; `config_json` may be empty.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> FromJson(std::string_view tokenizer_json,
                                                                   std::string_view config_json);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Bytes that are not UTF-8 become U+FFFD first, one for each maximal broken part.
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The text of `ids`: valid UTF-8. Ids without a token are skipped; with `skip_special` special tokens are, too.
  std::string Decode(std::span<const int32_t> ids, bool skip_special) const;

  // 1 + the largest id of the vocabulary, added tokens included (ids below may be unused).
  int32_t vocab_size() const;
  // Identity of everything that decides ids and prompts: tokenizer.json, chat template, special texts. Part of GenKey.
  const Digest& digest() const;

  // The id of exactly this token text as it stands in the vocabulary (byte-level alphabet and all).
  std::optional<int32_t> TokenId(std::string_view token) const;
  // The vocabulary's text of `id`, or nullopt.
  std::optional<std::string> TokenText(int32_t id) const;
  bool IsSpecial(int32_t id) const;

  // Render them with ChatTemplate.
  const ChatTemplates& chat_templates() const;
  // Those of bos, eos, unk, sep, pad, cls and mask that tokenizer_config.json names: what a chat template may use.
  const SpecialTexts& special_texts() const;
  // "" if the config names none. TokenId gives their ids.
  const std::string& bos_token() const;
  const std::string& eos_token() const;

 private:
  friend class DecodeStream;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Build(std::string_view tokenizer_json,
                                                                std::string_view config_json,
                                                                std::optional<ChatTemplates> template_files,
                                                                const std::string& prefix);
  std::unique_ptr<const Impl> impl_;
};

// Incremental decoding of a generation. What Push and Flush return, put together, equals Tokenizer::Decode of all ids.
//
// Text is returned as soon as no later token can change it. It is held back while it can: an unfinished UTF-8 sequence,
// a run of <0xNN> byte tokens (one bad byte turns the whole run into U+FFFD), a possible start of a pattern that the
// decoder replaces.
class DecodeStream {
 public:
  DecodeStream(const Tokenizer& tokenizer, bool skip_special);
  ~DecodeStream();
  DecodeStream(DecodeStream&&) noexcept;
  DecodeStream& operator=(DecodeStream&&) noexcept;

  // The text that became final with this token; valid UTF-8, may be empty.
  std::string Push(int32_t id);
  // The rest. The stream is at its end: only destruction may follow.
  std::string Flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace iha::tokenizer
