#include "model/tokenizer/chat_template.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::tokenizer {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using End = ChatTemplate::End;

constexpr const char* kHead = "<|im_start|>";
constexpr const char* kTail = "<|im_end|>\n";
constexpr const char* kDefaultSystem = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

absl::StatusOr<std::string> RenderOnce(const std::string& source, const std::string& messages, End end = End::kClosed) {
  auto chat = ChatTemplate::Start({source, ""}, {{"bos_token", "<s>"}});
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
  auto chat = ChatTemplate::Start({source, ""}, {});
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

// tools/tokenizer_peer/templates, as transformers 5.24 renders them (templates.py --golden): whole prompts, and
// refusals.
TEST(ChatTemplate, EqualsTransformers) {
  const std::string folder = "tools/tokenizer_peer/templates/";
  const auto read = [&](const std::string& name) { return *ReadFile(folder + name + ".jinja", 1 << 20); };
  const std::string tools = *ReadFile("tests/model/tokenizer/chat_tools.json", 1 << 20);
  std::map<std::string, std::unique_ptr<ChatTemplate>> chats;
  std::ifstream goldens("tests/model/tokenizer/chat_goldens.jsonl");
  int rendered = 0, refused = 0;
  for (std::string line; std::getline(goldens, line);) {
    const auto row = nlohmann::ordered_json::parse(line);
    const auto name = row["template"].get<std::string>();
    std::unique_ptr<ChatTemplate>& chat = chats[name];
    if (chat == nullptr) {
      const ChatTemplates sources =
          name == "named" ? ChatTemplates{read("im_default_system"), read("im_tools")} : ChatTemplates{read(name), ""};
      auto started = ChatTemplate::Start(sources, {{"bos_token", "<|begin_of_text|>"}, {"eos_token", "<|eot_id|>"}});
      ASSERT_TRUE(started.ok()) << started.status();
      chat = *std::move(started);
    }
    const auto end_name = row["end"].get<std::string>();
    const End end = end_name == "assistant" ? End::kAssistant : end_name == "open" ? End::kOpenMessage : End::kClosed;
    const auto text = chat->RenderJson(row["messages"].dump(), end, row["tools"].get<bool>() ? tools : "");
    if (row["text"].is_null()) {
      EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument) << line;
      ++refused;
    } else {
      ASSERT_TRUE(text.ok()) << text.status() << line;
      EXPECT_EQ(*text, row["text"].get<std::string>()) << line;
      ++rendered;
    }
  }
  EXPECT_EQ(rendered, 588);
  EXPECT_EQ(refused, 228);
}

TEST(ChatTemplate, TheDateIsGivenAndNeverTheClocks) {
  const std::string source = "{{ strftime_now('%Y-%m-%d %A %H:%M:%S') }}";
  const auto chat = ChatTemplate::Start({source, ""}, {}, {.date = "2025-02-03"});
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(*(*chat)->Render(std::vector<ChatMessage>{{"user", "x"}}, End::kClosed), "2025-02-03 Monday 00:00:00");
  EXPECT_EQ(ChatTemplate::Start({source, ""}, {}, {.date = "soon"}).status().code(),
            absl::StatusCode::kInvalidArgument);
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
  EXPECT_THAT(ChatTemplate::Start({}, {}).status().message(), HasSubstr("the checkpoint has none"));
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
  for (const char* source : {"{{ namespace(_x=1) }}", "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
                             "{{ (''|attr('__class__')).__mro__ }}", "{{ lipsum.__globals__['os'] }}",
                             "{{ dict.fromkeys.__globals__['sys'] }}", "{{ '{0.__class__.__base__}'.format(1) }}",
                             "{{ ('{0.__class__}' | format)(1) }}", "{% include '/etc/passwd' %}",
                             "{% import '/etc/passwd' as p %}", "{{ self.__init__.__globals__ }}"}) {
    EXPECT_EQ(RenderOnce(source, one).status().code(), absl::StatusCode::kInvalidArgument) << source;
  }
  // A memory bomb ends in an error of the template, not of the process.
  EXPECT_EQ(RenderOnce("{{ ('x' * 100000000) * 100 }}", one).status().code(), absl::StatusCode::kInvalidArgument);
}

// What never ends is stopped, and what is too long is not handed on; each with a line that says so.
TEST(ChatTemplate, HostileTemplatesAreBounded) {
  const auto render = [](const std::string& source) {
    auto chat = ChatTemplate::Start({source, ""}, {}, {.timeout = absl::Seconds(3)});
    EXPECT_TRUE(chat.ok()) << chat.status();
    absl::Status status = (*chat)->Render(std::vector<ChatMessage>{{"user", "x"}}, End::kClosed).status();
    EXPECT_EQ(status.message().find('\n'), std::string_view::npos);
    // The helper was stopped or goes on: either way the next call returns.
    (void)(*chat)->Render(std::vector<ChatMessage>{{"user", "x"}}, End::kClosed);
    return status;
  };
  const std::string loop = "{% for a in range(90000) %}{% for b in range(90000) %}";
  const absl::Status endless = render(loop + "{% endfor %}{% endfor %}");
  EXPECT_EQ(endless.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(endless.message(), HasSubstr("chat template: not rendered within 3 s, its helper was stopped"));
  EXPECT_THAT(render(loop + "{{ 'x' * 1000 }}{% endfor %}{% endfor %}").message(),
              HasSubstr("the prompt has more than 8000000 characters"));
  EXPECT_THAT(render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").message(), HasSubstr("nests too deep"));
  EXPECT_EQ(render("{% set x = 'x' * 2000000000 %}{{ x | length }}").code(), absl::StatusCode::kInvalidArgument);
}

TEST(ChatTemplate, WithoutPythonOrJinjaItSaysWhatToInstall) {
  const auto start = [](const std::string& python) {
    return ChatTemplate::Start({"x", ""}, {}, {.timeout = absl::Seconds(3), .python = python}).status();
  };
  const absl::Status missing = start("/nonexistent/python3");
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(missing.message(), HasSubstr("/nonexistent/python3 is missing, which renders it; install python3"));
  const testing::TempDir dir;
  std::ofstream(dir.File("python3")) << "#!/bin/sh\nread x\necho '{\"missing\": \"No module named jinja2\"}'\nread x\n";
  std::filesystem::permissions(dir.File("python3"), std::filesystem::perms::owner_all);
  const absl::Status bare = start(dir.File("python3"));
  EXPECT_EQ(bare.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(bare.message(), "chat template: No module named jinja2; install python3-jinja2");
}

TEST(ChatTemplate, NamedTemplatesAndFiles) {
  const std::string one = R"([{"role":"user","content":"x"}])";
  const std::string json = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  const auto with_tools = [&](const Tokenizer& tokenizer, const std::string& tools) {
    return (*ChatTemplate::Start(tokenizer))->RenderJson(one, End::kClosed, tools);
  };
  const auto list = Tokenizer::FromJson(json, R"({"chat_template": [{"name": "default", "template": "d{{ tools }}"},
      {"name": "rag", "template": "r"}, {"name": "tool_use", "template": "t{{ tools | length }}"}]})");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(*with_tools(**list, ""), "dNone");
  EXPECT_EQ(*with_tools(**list, R"([{"type": "function"}])"), "t1");
  EXPECT_THAT(with_tools(**list, "[1]").status().message(), HasSubstr("tools: expected a list of JSON schemas"));
  const auto nameless = Tokenizer::FromJson(json, R"({"chat_template": [{"name": "rag", "template": "r"}]})");
  EXPECT_THAT(ChatTemplate::Start(**nameless).status().message(), HasSubstr("in a list the one named default"));
  const testing::TempDir dir;
  std::ofstream(dir.File("tokenizer.json")) << json;
  std::ofstream(dir.File("tokenizer_config.json")) << R"({"chat_template": "config"})";
  std::ofstream(dir.File("chat_template.jinja")) << "file\n";
  std::filesystem::create_directory(dir.File("additional_chat_templates"));
  std::ofstream(dir.File("additional_chat_templates/tool_use.jinja")) << "tools";
  const auto files = Tokenizer::Load(dir.path());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*with_tools(**files, ""), "file");
  EXPECT_EQ(*with_tools(**files, R"([{"type": "function"}])"), "tools");
}

TEST(ChatTemplate, GoesOnAfterAnError) {
  auto chat =
      ChatTemplate::Start({"{% if messages[0].role == 'x' %}{{ raise_exception('no x') }}{% endif %}ok", ""}, {});
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_FALSE((*chat)->Render(std::vector<ChatMessage>{{"x", ""}}, End::kClosed).ok());
  EXPECT_EQ(*(*chat)->Render(std::vector<ChatMessage>{{"y", "\xFF"}}, End::kClosed), "ok");
}

}  // namespace
}  // namespace iha::tokenizer
