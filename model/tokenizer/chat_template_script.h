// chat_template_script.h: the program of the chat template's child process. Its first line of input is
// {"template", "special_tokens"}, every later one {"messages", "end"}; each is answered by one line: {"text"},
// {"error"} or {"missing"} (no Jinja2).
#pragma once

namespace iha::tokenizer {

extern const char kChatTemplateScript[];

}  // namespace iha::tokenizer
