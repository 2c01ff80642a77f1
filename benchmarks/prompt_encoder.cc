#include "benchmarks/prompt_encoder.h"

#include "common/status_macros.h"

namespace iha::benchmarks {

using tokenizer::ChatMessage;
using tokenizer::ChatTemplate;

absl::StatusOr<std::vector<int32_t>> PromptEncoder::Encode(const Prompt& prompt) {
  if (!prompt.messages.empty()) return EncodeChat(prompt);
  return tokenizer_->Encode(prompt.text, {.add_special = true});
}

absl::StatusOr<std::vector<int32_t>> PromptEncoder::EncodeChat(const Prompt& prompt) {
  const std::vector<Message>& messages = prompt.messages;
  if (chat_ == nullptr || chat_date_ != prompt.template_date) {
    chat_.reset();
    tokenizer::ChatTemplateOptions options;
    if (!prompt.template_date.empty()) options.date = prompt.template_date;
    IHA_ASSIGN_OR_RETURN(chat_, ChatTemplate::Start(*tokenizer_, options));
    chat_date_ = prompt.template_date;
  }
  std::vector<ChatMessage> chat;
  for (const Message& message : messages) chat.push_back({message.role, message.content});
  // A chat that ends with the assistant's own words is one that the model goes on writing.
  const bool open = messages.back().role == "assistant";
  const auto end = open ? ChatTemplate::End::kOpenMessage : ChatTemplate::End::kAssistant;
  IHA_ASSIGN_OR_RETURN(const std::string text, chat_->Render(chat, end));
  return tokenizer_->Encode(text, {.add_special = false});
}

}  // namespace iha::benchmarks
