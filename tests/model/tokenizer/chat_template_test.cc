#include "model/tokenizer/chat_template.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/roots.h"

namespace iha::tokenizer {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using End = ChatTemplate::End;

constexpr const char* kHead = "<|im_start|>";
constexpr const char* kTail = "<|im_end|>\n";
constexpr const char* kDefaultSystem = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

absl::StatusOr<std::string> RenderOnce(const std::string& source, const std::string& messages, End end = End::kClosed) {
  auto chat = ChatTemplate::Start(source, {{"bos_token", "<s>"}});
  if (!chat.ok()) return chat.status();
  return (*chat)->RenderJson(messages, end);
}

// Takes a ChatML prompt apart again. What stands after the last head is an open message.
struct Conversation {
  std::vector<ChatMessage> messages;
  End end = End::kClosed;
};
Conversation Parse(std::string prompt) {
  Conversation c;
  while (!prompt.empty()) {
    EXPECT_TRUE(prompt.starts_with(kHead)) << prompt;
    const size_t line = prompt.find('\n');
    ChatMessage message{prompt.substr(12, line - 12), ""};
    const size_t tail = prompt.find(kTail);
    if (tail == std::string::npos) {
      message.content = prompt.substr(line + 1);
      c.end = message.content.empty() ? End::kAssistant : End::kOpenMessage;
      if (c.end == End::kOpenMessage) c.messages.push_back(message);
      return c;
    }
    message.content = prompt.substr(line + 1, tail - line - 1);
    prompt.erase(0, tail + std::string(kTail).size());
    // The template's own default: it must come back by itself.
    if (message.content != kDefaultSystem) c.messages.push_back(std::move(message));
  }
  return c;
}

TEST(ChatTemplate, RendersThePromptsOfTheHarness) {
  IHA_REQUIRE_CASES(cases);
  std::ifstream file(cases + "/ruler_rows/smollm2_tokenizer/chat_template.jinja");
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  auto chat = ChatTemplate::Start(source, {});
  ASSERT_TRUE(chat.ok()) << chat.status();
  std::ifstream prompts(cases + "/lm_eval/prompts.jsonl");
  int open = 0, generated = 0, own_system = 0;
  for (std::string line; std::getline(prompts, line);) {
    const Json row = Json::parse(line);
    if (row["variant"].get<std::string>().find("chat") == std::string::npos) continue;
    const auto prompt = row["prompt"].get<std::string>();
    const Conversation c = Parse(prompt);
    open += c.end == End::kOpenMessage;
    generated += c.end == End::kAssistant;
    own_system += c.messages[0].role == "system";
    const auto text = (*chat)->Render(c.messages, c.end);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, prompt) << row["task"] << row["variant"];
  }
  // 26 chat rows: each way to end a prompt must have been met.
  EXPECT_EQ(open + generated, 24);
  EXPECT_EQ(open, 6);
  EXPECT_EQ(own_system, 2);
}

TEST(ChatTemplate, SettingsAreThoseOfTransformers) {
  const std::string one = R"([{"role":"user","content":"h\u00e9\n"}])";
  // trim_blocks and lstrip_blocks; ensure_ascii false; special tokens; undefined names are empty.
  const auto text = RenderOnce(
      "{{ bos_token }}{{ pad_token }}\n  {% for m in messages %}\n{{ m | tojson }}\n  {% if loop.first %}\n  {% break "
      "%}\n"
      "  {% endif %}\n{% endfor %}",
      one);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "<s>\n{\"role\": \"user\", \"content\": \"h\xC3\xA9\\n\"}\n");
  EXPECT_EQ(*RenderOnce("{{ strftime_now('%d %b %Y %H:%M') }}", one), "26 Jul 2024 00:00");
  EXPECT_EQ(*RenderOnce("{{ tools is none }}{% generation %}{{ add_generation_prompt }}{% endgeneration %}", one,
                        End::kAssistant),
            "TrueTrue");
}

TEST(ChatTemplate, ContinuesAMessage) {
  const std::string source = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}";
  const std::string messages = R"([{"role":"user","content":"a"},{"role":"assistant","content":" b  "}])";
  // The template trims: so is the end of what is to be continued.
  EXPECT_EQ(*RenderOnce(source, messages, End::kOpenMessage), "[a][b");
  EXPECT_EQ(*RenderOnce("{% for m in messages %}[{{ m.content }}]{% endfor %}", messages, End::kOpenMessage),
            "[a][ b  ");
  EXPECT_THAT(RenderOnce("x", messages, End::kOpenMessage).status().message(),
              HasSubstr("leaves out the last message"));
}

TEST(ChatTemplate, ErrorsSayWhatTheTemplateSays) {
  const std::string one = R"([{"role":"user","content":"x"}])";
  const auto refused = RenderOnce("{{ raise_exception('roles must alternate') }}", one).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "chat template: roles must alternate");
  EXPECT_THAT(RenderOnce("{% if %}", one).status().message(), HasSubstr("chat template: Expected an expression"));
  EXPECT_THAT(ChatTemplate::Start("", {}).status().message(), HasSubstr("the checkpoint has none"));
  EXPECT_THAT(RenderOnce("x", "[]").status().message(), HasSubstr("messages: expected a list of one or more"));
  EXPECT_THAT(RenderOnce("x", "[1]").status().message(), HasSubstr("messages[0]: found number"));
  EXPECT_THAT(RenderOnce("x", "{").status().message(), HasSubstr("messages: expected"));
}

TEST(ChatTemplate, TheSandboxHolds) {
  const std::string one = R"([{"role":"user","content":"x"}])";
  for (const char* source : {"{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ messages.append(1) }}",
                             "{{ raise_exception.__globals__['sys'] }}", "{{ range(10000000) | length }}"}) {
    EXPECT_EQ(RenderOnce(source, one).status().code(), absl::StatusCode::kInvalidArgument) << source;
  }
  // A memory bomb ends in an error of the template, not of the process.
  EXPECT_EQ(RenderOnce("{{ ('x' * 100000000) * 100 }}", one).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ChatTemplate, GoesOnAfterAnError) {
  auto chat = ChatTemplate::Start("{% if messages[0].role == 'x' %}{{ raise_exception('no x') }}{% endif %}ok", {});
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_FALSE((*chat)->Render(std::vector<ChatMessage>{{"x", ""}}, End::kClosed).ok());
  EXPECT_EQ(*(*chat)->Render(std::vector<ChatMessage>{{"y", "\xFF"}}, End::kClosed), "ok");
}

}  // namespace
}  // namespace iha::tokenizer
