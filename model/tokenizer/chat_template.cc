#include "model/tokenizer/chat_template.h"

#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/chat_template_script.h"

namespace iha::tokenizer {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;
constexpr size_t kMessageBytes = 2000;

// One line of ASCII; strings that are not UTF-8 get U+FFFD.
std::string Line(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

std::string_view EndName(ChatTemplate::End end) {
  switch (end) {
    case ChatTemplate::End::kAssistant:
      return "assistant";
    case ChatTemplate::End::kOpenMessage:
      return "open";
    case ChatTemplate::End::kClosed:
      break;
  }
  return "closed";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Start(const Tokenizer& tokenizer,
                                                                  const ChatTemplateOptions& options) {
  return Start(tokenizer.chat_templates(), tokenizer.special_texts(), options);
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Start(const ChatTemplates& templates,
                                                                  const SpecialTexts& special_texts,
                                                                  const ChatTemplateOptions& options) {
  if (templates.text.empty()) {
    return InvalidArgument(
        "chat template: the checkpoint has none (chat_template in tokenizer_config.json, in a list the one named "
        "default, or chat_template.jinja)");
  }
  Json question = {
      {"templates", {{"default", templates.text}}}, {"special_tokens", special_texts}, {"date", options.date}};
  if (!templates.tool_use.empty()) question["templates"]["tool_use"] = templates.tool_use;
  ChildOptions child;
  child.argv = {options.python, "-I", "-c", kChatTemplateScript};
  // Memory bombs end in an error of the template; nothing may be written, and no core.
  child.limits = {{RLIMIT_AS, kMemoryBytes}, {RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}};
  absl::StatusOr<std::unique_ptr<LineHelper>> helper = LineHelper::Start(child);
  if (absl::IsNotFound(helper.status())) {
    return FailedPrecondition("chat template: {} is missing, which renders it; install python3 and python3-jinja2",
                              options.python);
  }
  if (!helper.ok()) return helper.status();
  std::unique_ptr<ChatTemplate> chat(new ChatTemplate(*std::move(helper), options.timeout));
  IHA_RETURN_IF_ERROR(chat->Ask(Line(question)).status());
  return chat;
}

absl::StatusOr<std::string> ChatTemplate::Ask(const std::string& question) {
  const absl::StatusOr<std::string> line = helper_->Exchange(question, timeout_);
  if (absl::IsDeadlineExceeded(line.status())) {
    return DeadlineExceeded("chat template: not rendered within {} s, its helper was stopped (does it loop for good?)",
                            absl::ToInt64Seconds(timeout_));
  }
  if (!line.ok()) return Annotate(line.status(), "chat template");
  const Json answer = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* key) -> const std::string* {
    const auto it = answer.is_object() ? answer.find(key) : answer.end();
    return it == answer.end() || !it->is_string() ? nullptr : &it->get_ref<const std::string&>();
  };
  if (const std::string* text = text_of("text")) return *text;
  if (const std::string* missing = text_of("missing")) {
    return FailedPrecondition("chat template: {}; install python3-jinja2", TerminalSafe(*missing, kMessageBytes));
  }
  const std::string* error = text_of("error");
  return InvalidArgument("chat template: {}",
                         error == nullptr ? "the text is not valid Unicode" : TerminalSafe(*error, kMessageBytes));
}

absl::StatusOr<std::string> ChatTemplate::Render(std::span<const ChatMessage> messages, End end) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return RenderJson(list.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace), end);
}

absl::StatusOr<std::string> ChatTemplate::RenderJson(std::string_view messages_json, End end,
                                                     std::string_view tools_json) {
  const Json messages = Json::parse(messages_json, nullptr, /*allow_exceptions=*/false);
  if (!messages.is_array() || messages.empty()) {
    return InvalidArgument("messages: expected a list of one or more {{\"role\", \"content\"}} objects");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      return InvalidArgument("messages[{}]: found {}, expected an object with \"role\" and \"content\"", i,
                             messages[i].type_name());
    }
  }
  if (!tools_json.empty()) {
    const Json tools = Json::parse(tools_json, nullptr, /*allow_exceptions=*/false);
    const auto is_object = [](const Json& tool) { return tool.is_object(); };
    if (!tools.is_array() || !std::all_of(tools.begin(), tools.end(), is_object)) {
      return InvalidArgument("tools: expected a list of JSON schemas");
    }
  }
  // Passed on as it was written: templates print messages with tojson, in the order of their keys. Line ends can only
  // stand between JSON's tokens.
  std::string question = fmt::format(R"({{"messages":{},"tools":{},"end":"{}"}})", messages_json,
                                     tools_json.empty() ? "null" : tools_json, EndName(end));
  std::replace(question.begin(), question.end(), '\n', ' ');
  return Ask(question);
}

}  // namespace iha::tokenizer
