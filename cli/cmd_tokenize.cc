#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "common/errors.h"
#include "common/jsonl_tool.h"
#include "common/status_macros.h"
#include "model/tokenizer/chat_template.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::Tokenizer;

struct Flags {
  std::string model;
  std::string file = "-";
  std::string special = "parse";
  bool add_special = false;
  bool skip_special = false;
  bool pieces = false;
  bool chat = false;
  std::string chat_end = "assistant";
};

// The prompt that a chat becomes; the template writes its special tokens itself.
int RunTokenizeChat(const Flags& flags, const Tokenizer& tokenizer) {
  using End = tokenizer::ChatTemplate::End;
  const End end = flags.chat_end == "assistant" ? End::kAssistant
                  : flags.chat_end == "open"    ? End::kOpenMessage
                                                : End::kClosed;
  const auto chat = tokenizer::ChatTemplate::Start(tokenizer);
  if (!chat.ok()) return Fail("tokenize", chat.status());
  return RunJsonlToolOnFile(
      {.name = "iha-eval tokenize",
       .consumes = {"messages", "tools"},
       .step = [&](const Json& in, Json& out) -> absl::Status {
         const auto messages = in.find("messages");
         if (messages == in.end()) {
           return InvalidArgument("field \"messages\": missing; expected a list of messages");
         }
         const auto tools = in.find("tools");
         IHA_ASSIGN_OR_RETURN(
             const std::string text,
             (*chat)->RenderJson(messages->dump(), end, tools == in.end() || tools->is_null() ? "" : tools->dump()));
         out["text"] = text;
         out["ids"] = tokenizer.Encode(text, {.add_special = false});
         return absl::OkStatus();
       }},
      flags.file);
}

int RunTokenize(const Flags& flags) {
  const auto tokenizer = Tokenizer::Load(flags.model);
  if (!tokenizer.ok()) return Fail("tokenize", tokenizer.status());
  if (flags.chat) return RunTokenizeChat(flags, **tokenizer);
  const Tokenizer::EncodeOptions options{.add_special = flags.add_special, .parse_special = flags.special == "parse"};
  return RunJsonlToolOnFile({.name = "iha-eval tokenize",
                             .consumes = {"text"},
                             .step = [&](const Json& in, Json& out) -> absl::Status {
                               std::string text;
                               IHA_RETURN_IF_ERROR(GetString(in, "text", text));
                               out["ids"] = (*tokenizer)->Encode(text, options);
                               return absl::OkStatus();
                             }},
                            flags.file);
}

// What a reader of a stream of these tokens gets, token by token; the last entry is what only the end releases.
Json StreamedPieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
  tokenizer::DecodeStream stream(tokenizer, skip_special);
  Json pieces = Json::array();
  for (const int32_t id : ids) pieces.push_back(stream.Push(id));
  pieces.push_back(stream.Flush());
  return pieces;
}

int RunDetokenize(const Flags& flags) {
  const auto tokenizer = Tokenizer::Load(flags.model);
  if (!tokenizer.ok()) return Fail("detokenize", tokenizer.status());
  return RunJsonlToolOnFile({.name = "iha-eval detokenize",
                             .consumes = {"ids"},
                             .step = [&](const Json& in, Json& out) -> absl::Status {
                               std::vector<int32_t> ids;
                               IHA_RETURN_IF_ERROR(GetTokenIds(in, "ids", ids));
                               out["text"] = (*tokenizer)->Decode(ids, flags.skip_special);
                               if (flags.pieces) out["pieces"] = StreamedPieces(**tokenizer, ids, flags.skip_special);
                               return absl::OkStatus();
                             }},
                            flags.file);
}

}  // namespace

void AddTokenize(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* encode = app.add_subcommand("tokenize", "JSON Lines {\"text\"} to {\"ids\"}");
  encode->add_option("--model", flags->model, "checkpoint directory")->required();
  encode->add_option("--special", flags->special, "special tokens inside the text: parse them, or take them as text")
      ->check(CLI::IsMember({"parse", "text"}));
  encode->add_flag("--add-special", flags->add_special, "run the post-processor (BOS and the like)");
  encode->add_flag("--chat", flags->chat,
                   "{\"messages\"} (and \"tools\") through the checkpoint's chat template; adds \"text\"");
  encode
      ->add_option("--chat-end", flags->chat_end,
                   "with --chat, end in the head of an answer, inside the last message, or after it")
      ->check(CLI::IsMember({"assistant", "open", "closed"}));
  encode->add_option("file", flags->file, "JSON Lines file; - = stdin");
  encode->footer("Example:\n  echo '{\"text\":\"Hello\"}' | iha-eval tokenize --model DIR");
  encode->callback([flags, &command] { command.exit_code = RunTokenize(*flags); });

  CLI::App* decode = app.add_subcommand("detokenize", "JSON Lines {\"ids\"} to {\"text\"}");
  decode->add_option("--model", flags->model, "checkpoint directory")->required();
  decode->add_flag("--skip-special", flags->skip_special, "drop special tokens");
  decode->add_flag("--pieces", flags->pieces,
                   "add \"pieces\": the text that each token makes final in a stream, and what the end releases");
  decode->add_option("file", flags->file, "JSON Lines file; - = stdin");
  decode->footer("Example:\n  echo '{\"ids\":[19556]}' | iha-eval detokenize --model DIR");
  for (CLI::App* sub : {encode, decode}) sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  decode->callback([flags, &command] { command.exit_code = RunDetokenize(*flags); });
}

}  // namespace iha::cli
