// decoder.h: what tokenizer.json's "decoder" does to the token texts, as a chain of streaming stages.
//
// A token text comes in fragments; the last fragment of a token says so. Each stage hands on what is final and keeps
// what later input could change, so one implementation serves whole and incremental decoding, and they cannot differ.
// A DecoderSpec is immutable and shared by threads; a DecodeChain belongs to one thread.
// Errors of Parse: InvalidArgument naming the field or the unknown type.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"

namespace iha::tokenizer {

class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  // Valid UTF-8 in whole characters. `ends` marks the last fragment of a token.
  virtual void Feed(std::string_view fragment, bool ends) = 0;
  // No token follows (and the last one has ended): hands on the rest, then finishes the next stage.
  virtual void Finish() = 0;

  DecodeStage* next = nullptr;
};

// How to make one stage.
class DecodeStageSpec {
 public:
  virtual ~DecodeStageSpec() = default;
  virtual std::unique_ptr<DecodeStage> Make() const = 0;
};

class DecoderSpec {
 public:
  // `value` may be null: token texts are joined by spaces then.
  static absl::StatusOr<DecoderSpec> Parse(const Json& value, const std::string& path);

 private:
  friend class DecodeChain;
  absl::Status ParseAt(const Json& value, const std::string& path, int depth);
  std::vector<std::unique_ptr<const DecodeStageSpec>> stages_;
  double growth_ = 1;  // how many times longer the stages can make a text
};

class DecodeChain {
 public:
  explicit DecodeChain(const DecoderSpec& spec);
  DecodeChain(const DecodeChain&) = delete;
  DecodeChain& operator=(const DecodeChain&) = delete;
  // A whole token text.
  void Token(std::string_view text);
  void Finish();
  // The final text so far that has not been taken yet.
  std::string Take();

 private:
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // the last one collects the text
  std::string text_;
};

// The stages (decode_stages.cc). Strings are whole characters.
std::unique_ptr<const DecodeStageSpec> ByteLevelDecode();
std::unique_ptr<const DecodeStageSpec> ByteFallbackDecode();
std::unique_ptr<const DecodeStageSpec> FuseDecode();
std::unique_ptr<const DecodeStageSpec> MetaspaceDecode(char32_t replacement, bool drop_first);
std::unique_ptr<const DecodeStageSpec> StripDecode(char32_t content, size_t start, size_t stop);
class Pattern;
std::unique_ptr<const DecodeStageSpec> ReplaceDecode(Pattern pattern, std::string content);
std::unique_ptr<const DecodeStageSpec> JoinDecode(std::string separator);

}  // namespace iha::tokenizer
