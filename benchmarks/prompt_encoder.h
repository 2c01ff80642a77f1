// prompt_encoder.h: a benchmark's prompt to token ids, with the loaded checkpoint's tokenizer and chat template.
//
// Plain text gets the special tokens that the tokenizer adds (BOS); a chat is rendered by the checkpoint's own
// template, which writes its special tokens itself, so none are added again. The template's helper process is started
// with the first chat. One thread (ChatTemplate's rule: the one that outlives the helper). Blocking. Errors:
// InvalidArgument (the checkpoint has no template, or the template refuses the messages: its own words),
// FailedPrecondition (Jinja2 is not installed), those of ChatTemplate.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"
#include "model/tokenizer/chat_template.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::benchmarks {

class PromptEncoder {
 public:
  explicit PromptEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<std::vector<int32_t>> Encode(const Prompt& prompt);

 private:
  absl::StatusOr<std::vector<int32_t>> EncodeChat(const Prompt& prompt);

  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<tokenizer::ChatTemplate> chat_;
  std::string chat_date_;  // that it was started with
};

}  // namespace iha::benchmarks
