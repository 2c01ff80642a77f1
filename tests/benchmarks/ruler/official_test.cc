// Official rows against the handed rows of NVIDIA's scripts, byte for byte; counts, caching, ends of tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "benchmarks/python_random.h"
#include "benchmarks/ruler/data_files.h"
#include "benchmarks/ruler/haystack.h"
#include "benchmarks/ruler/token_counter.h"
#include "tests/benchmarks/ruler/ruler_support.h"

namespace iha::benchmarks::ruler {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The tasks of one handed folder, with its lines.
std::map<std::string, std::vector<std::string>> HandedRows(const std::string& folder) {
  std::map<std::string, std::vector<std::string>> rows;
  for (const auto& file : fs::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    rows[name.substr(0, name.find('.'))] = testing::GzLines(file.path().string());
  }
  return rows;
}

// Every row is the handed line; its length is that of the whole text counted anew.
void CheckRows(const RulerOptions& options, const std::vector<std::string>& expected, bool as_parsed) {
  const absl::StatusOr<RulerRows> rows = MakeRows(options, 0, static_cast<int64_t>(expected.size()));
  ASSERT_TRUE(rows.ok()) << options.task << ": " << rows.status();
  ASSERT_EQ(rows->rows.size(), expected.size()) << options.task << (rows->end ? rows->end->cause : "");
  const TokenCounter counter(options.tokenizer);
  EXPECT_TRUE(counter.has_cuts());
  const int64_t generated = FindTask(options.task)->tokens_to_generate;
  for (size_t i = 0; i < expected.size(); ++i) {
    const RulerRow& row = rows->rows[i];
    const std::string line = ToJsonLine(row);
    if (as_parsed) {
      EXPECT_EQ(nlohmann::json::parse(line), nlohmann::json::parse(expected[i])) << options.task << " row " << i;
    } else {
      EXPECT_EQ(line, expected[i]) << options.task << " row " << i;
    }
    EXPECT_EQ(row.length, counter.Whole(row.input + row.answer_prefix) + generated) << options.task << " row " << i;
    EXPECT_LE(row.length, options.length);
  }
}

void CheckFolder(const std::string& data, const std::string& cases, const std::string& folder, int64_t length,
                 const std::string& chat) {
  for (const auto& [task, lines] : HandedRows(cases + "/ruler_rows/" + folder)) {
    RulerOptions options = SmolLm2Options(data, cases, task, length);
    options.chat = *MakeChatTexts(chat, options.tokenizer.get());
    CheckRows(options, lines, false);
  }
}

TEST(RulerOfficial, HandedRowsAt1024) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  CheckFolder(data, cases, "official_smollm2/1024", 1024, "base");
}

TEST(RulerOfficial, HandedRowsAt4096) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  CheckFolder(data, cases, "official_smollm2/4096", 4096, "base");
}

TEST(RulerOfficial, HandedRowsWithAChatTemplate) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  CheckFolder(data, cases, "official_smollm2_phi3/4096", 4096, "Phi3");
}

TEST(RulerOfficial, HandedRowsCountedInWords) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  for (const auto& [task, lines] : HandedRows(cases + "/ruler_rows/official_whitespace/4096")) {
    RulerOptions options = SmolLm2Options(data, cases, task, 4096);
    options.tokenizer = nullptr;
    options.sentences = Sentences::kSimple;
    CheckRows(options, lines, true);
  }
}

// However rows are asked for (more of them, a range, again from the file, from a damaged file), they are the same.
TEST(RulerOfficial, CachedRowsAreTheRowsOfTheStream) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  for (const Task& task : Tasks()) {
    SCOPED_TRACE(task.name);
    const testing::TempDir folder;
    RulerOptions options =
        SmolLm2Options(data, cases, std::string(task.name), task.family == Family::kQa ? 4096 : 1024);
    const auto stream = MakeRows(options, 0, 5);
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_EQ(stream->rows.size(), 5u);
    const auto expect = [&](int64_t first, int64_t count) {
      const auto rows = MakeRows(options, first, count);
      ASSERT_TRUE(rows.ok()) << rows.status();
      ASSERT_EQ(static_cast<int64_t>(rows->rows.size()), count);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(rows->rows[i], stream->rows[first + i]) << first + i;
    };
    options.cache_dir = folder.File("cache");
    expect(0, 2);
    expect(0, 2);
    expect(1, 1);
    expect(3, 2);  // longer than what the file has
    expect(0, 5);
    for (const char* extension : {".jsonl", ".json"}) {
      for (const auto& file : fs::directory_iterator(options.cache_dir)) {
        if (file.path().extension() != extension) continue;
        std::fstream damaged(file.path(), std::ios::in | std::ios::out);
        damaged.seekp(40);
        damaged << "@@@@";
      }
      expect(0, 5);
    }
    options.samples = 4;
    options.seed = 43;
    const auto other = MakeRows(options, 0, 1);
    EXPECT_NE(other->rows[0].input, stream->rows[0].input);
  }
}

TEST(RulerOfficial, EachGivesTheSameRowsWithAndWithoutACache) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const testing::TempDir folder;
  RulerOptions options = SmolLm2Options(data, cases, "cwe", 1024);
  const auto collect = [&] {
    std::vector<RulerRow> rows;
    const auto generator = Generator::Open(options);
    const auto end = (*generator)->Each(3, [&](const RulerRow& row) {
      rows.push_back(row);
      return absl::OkStatus();
    });
    EXPECT_TRUE(end.ok() && !end->has_value()) << end.status();
    return rows;
  };
  const std::vector<RulerRow> streamed = collect();
  ASSERT_EQ(streamed.size(), 3u);
  options.cache_dir = folder.path();
  EXPECT_EQ(collect(), streamed);
  EXPECT_EQ(collect(), streamed);
}

// Where NVIDIA's script would never end: the rows before stay.
TEST(RulerOfficial, DeadEndsKeepTheRowsBefore) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const testing::TempDir folder;
  RulerOptions options = SmolLm2Options(data, cases, "qa_2", 4096);
  options.cache_dir = folder.path();
  for (int again = 0; again < 2; ++again) {
    const auto rows = MakeRows(options, 0, 10);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->rows.size(), 7u);
    ASSERT_TRUE(rows->end.has_value());
    EXPECT_EQ(rows->end->kind, EndKind::kGeneratorDeadEnd);
    EXPECT_EQ(rows->end->row, 7);
    EXPECT_THAT(rows->end->cause, HasSubstr("1000 attempts at 9 documents gave no row"));
  }
  const auto before = MakeRows(options, 2, 3);
  EXPECT_EQ(before->rows.size(), 3u);
  EXPECT_FALSE(before->end.has_value());
  for (const char* task : {"qa_1", "qa_2"}) {
    const auto rows = MakeRows(SmolLm2Options(data, cases, task, 1024), 0, 2);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_TRUE(rows->rows.empty());
    ASSERT_TRUE(rows->end.has_value());
    EXPECT_THAT(rows->end->cause, HasSubstr("it may take 1024"));
  }
}

TEST(RulerOfficial, QuestionsEnd) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  RulerOptions options = SmolLm2Options(data, cases, "qa_2", 16384);
  const auto rows = MakeRows(options, 97, 10);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_TRUE(rows->end.has_value());
  EXPECT_EQ(rows->rows.size(), 3u) << rows->end->cause;
  EXPECT_EQ(rows->end->kind, EndKind::kDataExhausted);
  EXPECT_EQ(rows->end->row, 100);
}

TEST(RulerOfficial, RefusalsSayWhatIsWrong) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const auto message = [](const RulerOptions& options) {
    return std::string(Generator::Open(options).status().message());
  };
  EXPECT_THAT(message(SmolLm2Options(data, cases, "niah_singel_1", 4096)), HasSubstr("did you mean \"niah_single_1\""));
  for (const Task& task : Tasks()) {
    EXPECT_THAT(message(SmolLm2Options(data, cases, std::string(task.name), 60)), HasSubstr("is too short"))
        << task.name;
  }
  RulerOptions options = SmolLm2Options(data, cases, "vt", 4096);
  options.seed = uint64_t{1} << 32;
  EXPECT_THAT(message(options), HasSubstr("seeds below 2^32"));
  options.task = "cwe";
  EXPECT_EQ(message(options), "");
  options = SmolLm2Options("/nowhere", cases, "niah_single_2", 4096);
  options.texts = nullptr;
  EXPECT_THAT(message(options), HasSubstr("/nowhere/ruler/wonderwords/nounlist.txt: no such file"));
}

// Of a task, links to `files` of the data root.
void LinkFiles(const std::string& data, const std::vector<std::string>& files, const std::string& root) {
  for (const std::string& file : files) {
    fs::create_directories((fs::path(root) / file).parent_path());
    fs::create_symlink(fs::path(data) / file, fs::path(root) / file);
  }
}

// What a task names is what it reads: with these files alone it has rows, without one of them it has none.
TEST(RulerOfficial, ATaskReadsTheFilesThatItNames) {
  IHA_REQUIRE_DATA(data);
  for (const Task& task : Tasks()) {
    for (const Sentences sentences : {Sentences::kPunkt, Sentences::kSimple}) {
      if (sentences == Sentences::kSimple && !task.needs_essays()) continue;
      const std::vector<std::string> files = DataFilesOf(task, sentences, /*essays=*/true);
      const testing::TempDir root;
      LinkFiles(data, files, root.path());
      RulerOptions options;
      options.task = std::string(task.name);
      options.length = 4096;
      options.sentences = sentences;
      options.data_root = root.path();
      for (const Mode mode : {Mode::kOfficial, Mode::kSeeded}) {
        options.mode = mode;
        const auto rows = MakeRows(options, 0, 1);
        ASSERT_TRUE(rows.ok()) << task.name << ": " << rows.status();
        EXPECT_EQ(rows->rows.size(), 1u) << task.name;
      }
      options.mode = Mode::kOfficial;
      for (const std::string& file : files) {
        fs::rename(root.File(file), root.File("away"));
        EXPECT_THAT(Generator::Open(options).status().message(), HasSubstr(file + ": no such file")) << task.name;
        fs::rename(root.File("away"), root.File(file));
      }
    }
  }
}

// A list of more words than wonderwords has needs a file that the data root may lack.
TEST(RulerOfficial, CweWithoutEnglishWordsIsRefusedWhereItNeedsThem) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  if (fs::exists(fs::path(data) / "ruler/english_words.json")) GTEST_SKIP() << "the data root has english_words.json";
  RulerOptions options = SmolLm2Options(data, cases, "cwe", 65536);
  options.tokenizer = nullptr;
  const auto rows = MakeRows(options, 0, 1);
  EXPECT_THAT(rows.status().message(), HasSubstr("more than the 8166 of wonderwords"));
  EXPECT_THAT(rows.status().message(), HasSubstr("english_words.json: no such file"));
}

TEST(RulerTemplates, TextsOfTheChatTemplates) {
  IHA_REQUIRE_CASES(cases);
  const auto tokenizer = SmolLm2(cases);
  const auto model = MakeChatTexts("model", tokenizer.get());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->before.ends_with("<|im_start|>user\n")) << model->before;
  EXPECT_EQ(model->after, "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(model->own_special_tokens);
  EXPECT_THAT(MakeChatTexts("model", nullptr).status().message(), HasSubstr("--template base"));
  EXPECT_THAT(MakeChatTexts("Phi4", nullptr).status().message(), HasSubstr("did you mean \"Phi3\""));
  EXPECT_FALSE(MakeChatTexts("base", nullptr)->own_special_tokens);

  const Task& one = *FindTask("niah_single_3");
  const ChatTexts vicuna = *MakeChatTexts("vicuna-chat", nullptr);
  const PromptParts official = MakePromptParts(one, vicuna, false), kept = MakePromptParts(one, vicuna, true);
  EXPECT_THAT(official.head, HasSubstr("and polite answer to the user"));
  EXPECT_THAT(kept.head, HasSubstr("and polite answers to the user"));
  EXPECT_TRUE(
      kept.head.ends_with("A special magic uuid is hidden within the following text. Make sure to memorize it. I "
                          "will quiz you about the uuid afterwards.\n"));
  EXPECT_TRUE(kept.tail.ends_with(" ASSISTANT: The special magic uuid for {query} mentioned in the provided text is"));
}

// The prefix stands behind the assistant's header, with the prompt and what is generated within the length.
TEST(RulerTemplates, RowsOfTheCheckpointsOwnTemplate) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  for (const Mode mode : {Mode::kOfficial, Mode::kSeeded}) {
    for (const char* task : {"niah_single_1", "vt", "cwe"}) {
      RulerOptions options = SmolLm2Options(data, cases, task, 2048);
      options.mode = mode;
      options.chat = *MakeChatTexts("model", options.tokenizer.get());
      const auto rows = MakeRows(options, 0, 2);
      ASSERT_TRUE(rows.ok()) << rows.status();
      ASSERT_EQ(rows->rows.size(), 2u);
      for (const RulerRow& row : rows->rows) {
        EXPECT_TRUE(row.input.ends_with("<|im_start|>assistant\n"));
        const auto ids = options.tokenizer->Encode(row.input + row.answer_prefix);
        EXPECT_EQ(row.length, static_cast<int64_t>(ids.size()) + FindTask(task)->tokens_to_generate);
        EXPECT_LE(row.length, 2048);
      }
    }
  }
}

// Texts put together from parts count as the same texts whole, wherever the parts are cut.
TEST(RulerCounts, PartsCountAsTheWhole) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  TokenCounter counter(SmolLm2(cases));
  ASSERT_TRUE(counter.has_cuts());
  Haystack essays = **SharedTexts(data)->Essays(Sentences::kPunkt);
  essays.CountTo(counter, 4000);
  const HaystackPrefix prefix = essays.Prefix(3000);
  PythonRandom random(5);
  for (int trial = 0; trial < 300; ++trial) {
    CountedText text(counter);
    for (int part = 0; part < 6; ++part) {
      const size_t a = random.RandBelow(prefix.sentences), b = a + random.RandBelow(9);
      if (random.RandBelow(3) == 0) text.Append(random.RandBelow(2) == 0 ? " " : "\n12 - x.");
      text.Append(essays.Sentences(prefix, a, std::min(b, prefix.sentences)));
      if (random.RandBelow(2) == 0) text.AppendPart(" word", counter.Behind(" word"));
      if (random.RandBelow(2) == 0) text.AppendPart(" 13.", counter.Behind(" 13."));
    }
    ASSERT_EQ(text.Tokens(), counter.Whole(text.text())) << text.text();
    const size_t cut = random.RandBelow(static_cast<uint32_t>(text.text().size() + 1));
    ASSERT_EQ(text.TokensBefore(cut), counter.Whole(text.text().substr(0, cut))) << cut << " " << text.text();
  }
}

// A vocabulary with a token across a space: everything is counted whole, and right.
TEST(RulerCounts, TokenizersThatJoinWordsAreCountedWhole) {
  const char* json = R"({"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{"a":0,"b":1," ":2,"a ":3},
    "merges":[["a"," "]]}})";
  auto tokenizer = tokenizer::Tokenizer::FromJson(json, "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  TokenCounter counter(*std::move(tokenizer));
  EXPECT_FALSE(counter.has_cuts());
  CountedText text(counter);
  text.Append("a b");
  text.AppendPart(" a", 0);
  EXPECT_EQ(text.Tokens(), counter.Whole("a b a"));
}

}  // namespace
}  // namespace iha::benchmarks::ruler
