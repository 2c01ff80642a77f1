// templates.h: what stands around the text of a RULER prompt: the chat template, the task's words, the answer prefix.
//
// A prompt is chat.before + task text + chat.after + answer prefix: the prefix follows the assistant's header. Names
// and texts of NVIDIA's chat templates: scripts/data/template.py at c3f5e3b. Thread: any; MakeChatTexts of "model"
// starts the helper process of chat_template.h and ends it again (blocking, about 0.1 s).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/tasks.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::benchmarks::ruler {

struct ChatTexts {
  std::string name = "base";
  std::string before = "";
  std::string after = "";
  // The checkpoint's own template ("model") writes its special tokens itself: none may be added on encoding.
  bool own_special_tokens = false;
};

// `name`: base, Phi3, meta-llama3, vicuna-chat (NVIDIA's texts) or model (that of `tokenizer`). InvalidArgument:
// another name, "model" without a tokenizer or with one that has no chat template; errors of ChatTemplate.
absl::StatusOr<ChatTexts> MakeChatTexts(const std::string& name, const tokenizer::Tokenizer* tokenizer);

// How many special tokens (BOS and the like) encoding adds to a prompt of these texts: none where they bring them
// themselves. `tokenizer` null: 0.
int64_t SpecialTokensAdded(const ChatTexts& chat, const tokenizer::Tokenizer* tokenizer);

// The task's words with {context}, {query} and the like still in them.
std::string_view TaskText(const Task& task);
std::string_view AnswerPrefix(const Task& task);

// A prompt's text before and behind {context}. What is left to fill in: {query}, {num_v}.
struct PromptParts {
  std::string head;
  std::string tail;
};
// Of niah tasks with one answer the words become singular. NVIDIA replaces them in the whole prompt, the chat template
// included ("polite answers" becomes "polite answer"); `keep_chat` leaves that as it is.
PromptParts MakePromptParts(const Task& task, const ChatTexts& chat, bool keep_chat);

// Where a finished text is cut into input and answer prefix: the last place of the prefix's first ten characters.
size_t AnswerPrefixAt(const Task& task, std::string_view text);

}  // namespace iha::benchmarks::ruler
