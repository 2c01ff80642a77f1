// chat_template.h: messages to prompt text through the checkpoint's own Jinja template, as transformers renders it.
//
// Templates are programs, so Jinja2 runs them: in its immutable sandbox, in a child process (/usr/bin/python3 -I) with
// a memory limit and no environment, which opens nothing once the template is compiled. Settings are transformers'
// (trim_blocks, lstrip_blocks, loop controls, tojson, raise_exception, {% generation %}); documents are none.
// strftime_now is midnight of a given date, never the clock: a prompt must not depend on the day. The default date is
// the one that the templates themselves fall back on.
// Thread: belongs to one thread, and must be started by a thread that outlives it. Blocking: up to `timeout` a call.
// Errors: InvalidArgument (no template, bad template, bad messages, or the template refuses them: its own words
// follow), FailedPrecondition (no Python or Jinja2: install python3-jinja2), Unavailable or DeadlineExceeded (the child
// died or hangs and was killed: start a new one).
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

struct ChatTemplateOptions {
  std::string date = "2024-07-26";  // YYYY-MM-DD, what strftime_now sees
  absl::Duration timeout = absl::Seconds(30);
  std::string python = "/usr/bin/python3";  // Debian's, the one that python3-jinja2 belongs to
};

class ChatTemplate {
 public:
  enum class End {
    kClosed,      // after the last message
    kAssistant,   // with the head of an assistant message to be generated (add_generation_prompt)
    kOpenMessage  // inside the last message, which the model continues (continue_final_message)
  };

  // With the templates and the special tokens of `tokenizer`, which need not live on.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Start(const Tokenizer& tokenizer,
                                                             const ChatTemplateOptions& options = {});
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Start(const ChatTemplates& templates,
                                                             const SpecialTexts& special_texts,
                                                             const ChatTemplateOptions& options = {});

  // The prompt text. Encode it without add_special: templates write BOS themselves.
  absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages, End end);
  // `messages_json`: a list of {"role", "content", ...} objects. `tools_json`: "" or a list of JSON schemas; with tools
  // the template named tool_use is taken if there is one.
  absl::StatusOr<std::string> RenderJson(std::string_view messages_json, End end, std::string_view tools_json = "");

 private:
  ChatTemplate(std::unique_ptr<LineHelper> helper, absl::Duration timeout)
      : helper_(std::move(helper)), timeout_(timeout) {}
  absl::StatusOr<std::string> Ask(const std::string& question);

  std::unique_ptr<LineHelper> helper_;
  absl::Duration timeout_;
};

}  // namespace iha::tokenizer
