// chat_template.h: messages to prompt text through the checkpoint's own Jinja template, as transformers renders it.
//
// Templates are programs, so Jinja2 runs them: in its immutable sandbox, in a child process (/usr/bin/python3 -I) with
// a memory limit and no environment. Settings are transformers' (trim_blocks, lstrip_blocks, loop controls, tojson,
// raise_exception, {% generation %}); tools and documents are none. strftime_now is 26 Jul 2024 00:00:00, always: a
// prompt must not depend on the day, and that is the date that the templates themselves fall back on.
// Thread: belongs to one thread, and must be started by a thread that outlives it. Blocking: up to kTimeout a call.
// Errors: InvalidArgument (no template, bad template, bad messages, or the template refuses them: its own words
// follow), FailedPrecondition (no Jinja2: install python3-jinja2), Unavailable or DeadlineExceeded (the child died or
// hangs: start a new one).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/line_helper.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::tokenizer {

struct ChatMessage {
  std::string role;
  std::string content;
};

class ChatTemplate {
 public:
  enum class End {
    kClosed,      // after the last message
    kAssistant,   // with the head of an assistant message to be generated (add_generation_prompt)
    kOpenMessage  // inside the last message, which the model continues (continue_final_message)
  };
  static constexpr absl::Duration kTimeout = absl::Seconds(60);

  // With the template and the special tokens of `tokenizer`, which need not live on.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Start(const Tokenizer& tokenizer);
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Start(const std::string& source,
                                                             const SpecialTexts& special_texts);

  // The prompt text. Encode it without add_special: templates write BOS themselves.
  absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages, End end);
  // `messages_json`: a list of {"role", "content", ...} objects.
  absl::StatusOr<std::string> RenderJson(std::string_view messages_json, End end);

 private:
  explicit ChatTemplate(std::unique_ptr<LineHelper> helper) : helper_(std::move(helper)) {}
  absl::StatusOr<std::string> Ask(const std::string& question);

  std::unique_ptr<LineHelper> helper_;
};

}  // namespace iha::tokenizer
