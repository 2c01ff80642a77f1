// prompt_encoder.h: a benchmark's prompt to token ids, with the loaded checkpoint's tokenizer and chat template.
//
// Plain text gets the special tokens that the tokenizer adds (BOS); a chat is rendered by the checkpoint's own
// template, which writes its special tokens itself, so none are added again. The template's helper process is started
// with the first chat. One thread (ChatTemplate's rule: the one that outlives the helper). Blocking. Errors:
// InvalidArgument (the checkpoint has no template, or the template refuses the messages: its own words),
// FailedPrecondition (Jinja2 is not installed), those of ChatTemplate.
#pragma once

#include <memory>
#include <optional>
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

  // The choices of a likelihood benchmark's prompt (plain form), in order, split as lm-evaluation-harness 0.4.13 splits
  // them (api/model.py _encode_pair, models/huggingface.py): white space at the prompt's end goes to the choice, and
  // what is scored is whatever the tokens of prompt + choice have more than those of the prompt. Behind a prompt
  // without tokens (empty; or white space alone, where that program stops) stands the checkpoint's bos token, else its
  // eos token. InvalidArgument besides: a choice without a token of its own, nothing to score it behind.
  absl::StatusOr<std::vector<Continuation>> EncodeChoices(const Prompt& prompt) const;

 private:
  absl::StatusOr<std::vector<int32_t>> EncodeChat(const Prompt& prompt);
  std::optional<int32_t> PrefixToken() const;

  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<tokenizer::ChatTemplate> chat_;
  std::string chat_date_;  // that it was started with
};

}  // namespace iha::benchmarks
