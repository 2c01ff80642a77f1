#include "benchmarks/prompt_encoder.h"

#include <algorithm>

#include "benchmarks/scoring/python_text.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {

using tokenizer::ChatMessage;
using tokenizer::ChatTemplate;

absl::StatusOr<std::vector<int32_t>> PromptEncoder::Encode(const Prompt& prompt) {
  if (!prompt.messages.empty()) return EncodeChat(prompt);
  return tokenizer_->Encode(prompt.text, {.add_special = !prompt.bare});
}

std::optional<int32_t> PromptEncoder::PrefixToken() const {
  for (const std::string& token : {tokenizer_->bos_token(), tokenizer_->eos_token()}) {
    if (!token.empty()) return tokenizer_->TokenId(token);
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<Continuation>> PromptEncoder::EncodeChoices(const Prompt& prompt) const {
  const std::optional<int32_t> prefix = PrefixToken();
  // A text that begins with that token itself gets no special tokens added.
  const std::string prefix_text = prefix.has_value() ? tokenizer_->Decode({{*prefix}}, /*skip_special=*/false) : "";
  const auto encode = [&](const std::string& text) {
    const bool marked = !prefix_text.empty() && text.starts_with(prefix_text);
    return tokenizer_->Encode(text, {.add_special = !marked});
  };
  const std::string context(scoring::PythonRstrip(prompt.text));
  const std::vector<int32_t> context_ids = prompt.text.empty() ? std::vector<int32_t>() : encode(context);
  // A prompt of white space alone may have no tokens either.
  const std::vector<int32_t> behind =
      context_ids.empty() && prefix.has_value() ? std::vector<int32_t>{*prefix} : context_ids;
  std::vector<Continuation> split;
  for (const std::string& choice : prompt.choices) {
    Continuation& out = split.emplace_back(Continuation{.context = behind, .tokens = {}});
    if (prompt.text.empty()) {
      out.tokens = tokenizer_->Encode(choice, {.add_special = false});
      // The choice brings that token itself.
      if (!out.tokens.empty() && out.tokens.front() == prefix) out.tokens.erase(out.tokens.begin());
    } else {
      out.tokens = encode(prompt.text + choice);
      out.tokens.erase(out.tokens.begin(), out.tokens.begin() + static_cast<std::ptrdiff_t>(
                                                                    std::min(context_ids.size(), out.tokens.size())));
    }
    const std::string which = fmt::format("choice {} (\"{}\")", split.size() - 1, TerminalSafe(choice, 80));
    if (out.tokens.empty()) {
      return InvalidArgument("{}: this tokenizer gives it no token of its own behind its prompt", which);
    }
    if (out.context.empty()) {
      return InvalidArgument("{}: its prompt has no tokens, and this tokenizer no bos or eos to stand there", which);
    }
  }
  return split;
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
