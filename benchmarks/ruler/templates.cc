#include "benchmarks/ruler/templates.h"

#include <array>
#include <vector>

#include "benchmarks/ruler/text.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"
#include "model/tokenizer/chat_template.h"

namespace iha::benchmarks::ruler {
namespace {

// What NVIDIA's template texts hold where the task's text goes; it passes through a chat template unchanged.
constexpr std::string_view kPlace = "{task_template}";

struct Named {
  std::string_view name, before, after;
};

constexpr std::array<Named, 4> kNvidia = {{
    {"base", "", ""},
    {"Phi3", "<|user|>\n", "<|end|>\n<|assistant|>\n"},
    {"meta-llama3", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n",
     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"vicuna-chat",
     "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, "
     "and polite answers to the user's questions. USER: ",
     " ASSISTANT:"},
}};

absl::StatusOr<ChatTexts> ModelTexts(const tokenizer::Tokenizer* tokenizer) {
  if (tokenizer == nullptr) {
    return InvalidArgument("--template model: needs a checkpoint's tokenizer, found whitespace; use --template base");
  }
  if (tokenizer->chat_templates().text.empty()) {
    return InvalidArgument("--template model: this checkpoint has no chat template; use --template base");
  }
  IHA_ASSIGN_OR_RETURN(const auto chat, tokenizer::ChatTemplate::Start(*tokenizer));
  const std::vector<tokenizer::ChatMessage> messages = {{"user", std::string(kPlace)}};
  IHA_ASSIGN_OR_RETURN(const std::string text, chat->Render(messages, tokenizer::ChatTemplate::End::kAssistant));
  const size_t at = text.find(kPlace);
  if (at == std::string::npos || text.find(kPlace, at + 1) != std::string::npos) {
    return InvalidArgument(
        "--template model: the checkpoint's chat template does not show a user's message exactly once as it is; use "
        "--template base");
  }
  return ChatTexts{.name = "model",
                   .before = text.substr(0, at),
                   .after = text.substr(at + kPlace.size()),
                   .own_special_tokens = true};
}

std::string_view NeedleType(const Task& task, bool singular) {
  if (task.niah.uuid_values) return singular ? "uuid" : "uuids";
  return singular ? "number" : "numbers";
}

}  // namespace

absl::StatusOr<ChatTexts> MakeChatTexts(const std::string& name, const tokenizer::Tokenizer* tokenizer) {
  if (name == "model") return ModelTexts(tokenizer);
  std::vector<std::string> names = {"model"};
  for (const Named& one : kNvidia) {
    if (one.name == name) {
      return ChatTexts{.name = name,
                       .before = std::string(one.before),
                       .after = std::string(one.after),
                       .own_special_tokens = false};
    }
    names.emplace_back(one.name);
  }
  return UnknownName("RULER template", name, names);
}

int64_t SpecialTokensAdded(const ChatTexts& chat, const tokenizer::Tokenizer* tokenizer) {
  if (tokenizer == nullptr || chat.own_special_tokens) return 0;
  // NVIDIA's meta-llama3 begins with that model's bos token: it gets no second one.
  const std::string& bos = tokenizer->bos_token();
  if (!bos.empty() && chat.before.starts_with(bos)) return 0;
  return static_cast<int64_t>(tokenizer->Encode("", {.add_special = true}).size());
}

std::string_view TaskText(const Task& task) {
  switch (task.family) {
    case Family::kNiah:
      return "Some special magic {type} are hidden within the following text. Make sure to memorize it. I will quiz "
             "you "
             "about the {type} afterwards.\n{context}\nWhat are all the special magic {type} for {query} mentioned in "
             "the provided text?";
    case Family::kVt:
      return "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n{context}\n"
             "Question: Find all variables that are assigned the value {query} in the text above.";
    case Family::kCwe:
      return "Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones "
             "that appear most often.\n{context}\nQuestion: What are the 10 most common words in the above list?";
    case Family::kFwe:
      return "Read the following coded text and track the frequency of each coded word. Find the three most "
             "frequently appeared coded words. {context}\nQuestion: Do not provide any explanation. Please ignore the "
             "dots '....'. What are the three most frequently appeared words in the above coded text?";
    case Family::kQa:
      return "Answer the question based on the given documents. Only give me the answer and do not output any other "
             "words.\n\nThe following are given documents.\n\n{context}\n\nAnswer the question based on the given "
             "documents. Only give me the answer and do not output any other words.\n\nQuestion: {query}";
  }
  return "";
}

std::string_view AnswerPrefix(const Task& task) {
  switch (task.family) {
    case Family::kNiah:
      return " The special magic {type} for {query} mentioned in the provided text are";
    case Family::kVt:
      return " Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables are "
             "assigned the value {query}, they are: ";
    case Family::kCwe:
      return " Answer: The top 10 words that appear most often in the list are:";
    case Family::kFwe:
      return " Answer: According to the coded text above, the three most frequently appeared words are:";
    case Family::kQa:
      return " Answer:";
  }
  return "";
}

PromptParts MakePromptParts(const Task& task, const ChatTexts& chat, bool keep_chat) {
  const bool one_answer = task.family == Family::kNiah && task.niah.values * task.niah.queries == 1;
  const auto words = [&](std::string text) {
    if (one_answer) {
      text = Replaced(text, "Some", "A");
      text = Replaced(text, "are all", "is");
      text = Replaced(text, "are", "is");
      text = Replaced(text, "answers", "answer");
    }
    return text;
  };
  const std::string task_text(TaskText(task)), prefix(AnswerPrefix(task));
  std::string text = keep_chat ? chat.before + words(task_text) + chat.after + words(prefix)
                               : words(chat.before + task_text + chat.after + prefix);
  if (task.family == Family::kNiah) text = Replaced(text, "{type}", NeedleType(task, one_answer));
  constexpr std::string_view kContext = "{context}";
  const size_t at = text.find(kContext);
  return {.head = text.substr(0, at), .tail = text.substr(at + kContext.size())};
}

size_t AnswerPrefixAt(const Task& task, std::string_view text) {
  constexpr size_t kLookedFor = 10;
  return text.rfind(AnswerPrefix(task).substr(0, kLookedFor));
}

}  // namespace iha::benchmarks::ruler
