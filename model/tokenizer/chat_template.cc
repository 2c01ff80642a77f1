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

// Debian's interpreter, the one that python3-jinja2 belongs to.
constexpr const char* kPython = "/usr/bin/python3";
constexpr uint64_t kMemoryBytes = uint64_t{2} << 30;
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

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Start(const Tokenizer& tokenizer) {
  return Start(tokenizer.chat_template(), tokenizer.special_texts());
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Start(const std::string& source,
                                                                  const SpecialTexts& special_texts) {
  if (source.empty()) {
    return InvalidArgument(
        "chat template: the checkpoint has none (chat_template in tokenizer_config.json, or chat_template.jinja)");
  }
  ChildOptions options;
  options.argv = {kPython, "-I", "-c", kChatTemplateScript};
  options.limits = {{RLIMIT_AS, kMemoryBytes}};
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<LineHelper> helper, LineHelper::Start(options));
  std::unique_ptr<ChatTemplate> chat(new ChatTemplate(std::move(helper)));
  IHA_RETURN_IF_ERROR(chat->Ask(Line({{"template", source}, {"special_tokens", special_texts}})).status());
  return chat;
}

absl::StatusOr<std::string> ChatTemplate::Ask(const std::string& question) {
  IHA_ASSIGN_OR_RETURN(const std::string line, helper_->Exchange(question, kTimeout));
  const Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
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

absl::StatusOr<std::string> ChatTemplate::RenderJson(std::string_view messages_json, End end) {
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
  // Passed on as it was written: templates print messages with tojson, in the order of their keys. Line ends can only
  // stand between JSON's tokens.
  std::string question = "{\"messages\":" + std::string(messages_json);
  std::replace(question.begin(), question.end(), '\n', ' ');
  return Ask(question + ",\"end\":\"" + std::string(EndName(end)) + "\"}");
}

}  // namespace iha::tokenizer
