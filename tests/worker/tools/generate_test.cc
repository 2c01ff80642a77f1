// iha-tool generate over the fake model: order, carried keys, bad lines, exit codes, sampling flags, batches.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>

#include "common/file.h"
#include "kernels/support/simd_target.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/tools/tool_run.h"

namespace iha::tools {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
using iha::testing::TempDir;
using testing::LineCount;
using testing::Rows;
using testing::RunTool;

class Generate : public ::testing::Test {
 protected:
  explicit Generate(model::FakeStyle style = model::FakeStyle::kWords) {
    const absl::Status made = model::MakeFakeCheckpoint(dir_.path(), {.context_tokens = 256, .style = style});
    EXPECT_TRUE(made.ok()) << made;
  }
  RunResult Run(const std::vector<std::string>& flags, const std::string& input) {
    std::vector<std::string> arguments = {"generate", "--model", dir_.path(), "--numerics", "fake"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunTool(arguments, input);
  }
  // The rows of a run without a bad line.
  std::vector<Json> RowsOf(const std::vector<std::string>& flags, const std::string& input) {
    const RunResult result = Run(flags, input);
    EXPECT_EQ(result.exit.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Rows(result.out);
  }

  TempDir dir_;
};

// Any token can come next: for tests of sampling.
class GenerateAnything : public Generate {
 protected:
  GenerateAnything() : Generate(model::FakeStyle::kHash) {}
};

TEST_F(Generate, ProfileGoesToStderrAndChangesNoByte) {
  const std::string input = "{\"prompt\":\"2 + 2\"}\n";
  const RunResult with = Run({"--profile"}, input);
  EXPECT_EQ(with.exit.code, 0);
  EXPECT_EQ(with.out, Run({}, input).out);
  EXPECT_THAT(with.err, StartsWith("operation "));
  EXPECT_THAT(with.err, HasSubstr("\ntokens: 5 of prompts, 0 of them taken over"));
  EXPECT_THAT(with.err, Not(HasSubstr("machine"))) << "the fake model notes no operation: there is nothing to compare";
}

TEST(EngineBuild, PrintsOneObject) {
  const RunResult result = RunTool({"engine-build"});
  EXPECT_EQ(result.exit.code, 0) << result.err;
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["simd"], kernels::CurrentSimdTarget().name);
  EXPECT_EQ(rows[0]["build"], kernels::SimdBuild());
}

TEST(MachinePeak, PrintsOneObject) {
  const RunResult result = RunTool({"machine-peak", "--threads", "2"});
  EXPECT_EQ(result.exit.code, 0) << result.err;
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["threads"], 2);
  EXPECT_GT(rows[0]["fma_gflops"], 0.0);
  EXPECT_GT(rows[0]["read_gbs"], 0.0);
  EXPECT_EQ(RunTool({"machine-peak", "--threads", "0"}).exit.code, 2);
}

TEST_F(Generate, CarriesKeysAndKeepsTheOrder) {
  std::string input;
  for (int i = 0; i < 100; i++) {
    // Long and short prompts by turns, so that later lines are complete first.
    const Json line = {{"id", i}, {"prompt", std::string(i % 2 == 0 ? 150 : 3, 'a' + i % 26)}, {"tags", {"x", i}}};
    input += line.dump() + "\n";
  }
  const auto rows = RowsOf({"--max-new-tokens", "20", "--max-batch", "3"}, input);
  ASSERT_EQ(rows.size(), 100u);
  for (size_t i = 0; i < rows.size(); i++) {
    EXPECT_EQ(rows[i]["id"], i);
    EXPECT_EQ(rows[i]["tags"], Json({"x", i}));
    EXPECT_FALSE(rows[i].contains("prompt"));
    ASSERT_EQ(rows[i]["samples"].size(), 1u);
    const Json& sample = rows[i]["samples"][0];
    EXPECT_TRUE(sample["text"].is_string());
    EXPECT_TRUE(sample["finish_reason"] == "length" || sample["finish_reason"] == "eos") << sample;
    EXPECT_EQ(sample["ids"].size() == 20, sample["finish_reason"] == "length" || sample["ids"].back() == 256);
    EXPECT_FALSE(sample.contains("logprobs"));
  }
}

TEST_F(Generate, IdsAreTakenAsTheyAre) {
  // The fake tokenizer's ids are bytes, so both lines are one prompt.
  const auto rows = RowsOf({}, "{\"prompt\":\"Hi!\"}\n{\"ids\":[72,105,33]}\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], rows[1]);
}

TEST_F(Generate, IdsNeedNoTokenizer) {
  const std::string ids = "{\"id\":1,\"ids\":[72,105,33]}\n";
  auto want = RowsOf({"--n", "2", "--logprobs", "1"}, ids);
  for (Json& sample : want.at(0)["samples"]) sample["text"] = nullptr;
  ASSERT_TRUE(std::filesystem::remove(dir_.File("tokenizer.json")));
  EXPECT_EQ(RowsOf({"--n", "2", "--logprobs", "1"}, ids), want);

  const RunResult text = Run({"--n", "2", "--logprobs", "1"}, "{\"prompt\":\"Hi!\"}\n" + ids);
  EXPECT_EQ(text.exit.code, 3);
  EXPECT_EQ(text.err,
            "iha-tool generate: line 1: field \"prompt\": no tokenizer.json beside the model; give \"ids\"\n");
  EXPECT_EQ(Rows(text.out), want);

  const RunResult stop = Run({"--stop", "a"}, ids);
  EXPECT_EQ(stop.exit.code, 3);
  EXPECT_EQ(stop.err, "iha-tool generate: --stop needs text: " + dir_.File("tokenizer.json") +
                          ": missing (expected a Hugging Face tokenizer file); import or copy it\n");
  EXPECT_EQ(stop.out, "");

  // One that is there must be good.
  ASSERT_TRUE(WriteFileAtomic(dir_.File("tokenizer.json"), "{").ok());
  EXPECT_EQ(Run({}, ids).exit.code, 3);
}

TEST_F(Generate, TextGetsTheSpecialTokensOfItsTokenizer) {
  const std::string path = dir_.File("tokenizer.json");
  Json tokenizer = Json::parse(*ReadFile(path), nullptr, false);
  tokenizer["post_processor"] = Json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|eos|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<|eos|>": {"id": "<|eos|>", "ids": [256], "tokens": ["<|eos|>"]}}})");
  ASSERT_TRUE(WriteFileAtomic(path, tokenizer.dump()).ok());
  const auto rows = RowsOf({}, "{\"prompt\":\"Hi!\"}\n{\"ids\":[256,72,105,33]}\n{\"ids\":[72,105,33]}\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_NE(rows[0], rows[2]);
}

TEST_F(Generate, BadLinesAreReportedAndTheRunGoesOn) {
  const std::string input =
      "{\"id\":1,\"prompt\":\"a\"}\n"
      "\n"
      "not json\n"
      "[1]\n"
      "{\"id\":5}\n"
      "{\"prompt\":\"a\",\"ids\":[1]}\n"
      "{\"ids\":[1,257]}\n"
      "{\"ids\":[1,-1]}\n"
      "{\"ids\":[]}\n"
      "{\"prompt\":7}\n" +
      Json({{"prompt", std::string(250, 'x')}}).dump() +
      "\n"
      "{\"id\":12,\"prompt\":\"b\"}";
  const RunResult result = Run({"--max-new-tokens", "8"}, input);
  EXPECT_EQ(result.exit.code, 3);
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"], 1);
  EXPECT_EQ(rows[1]["id"], 12);
  EXPECT_EQ(LineCount(result.err), 9) << result.err;
  for (const char* message :
       {"iha-tool generate: line 3: not a JSON object", "line 4: not a JSON object",
        "line 5: found none of \"prompt\" and \"ids\"", "line 6: found both", "line 7: prompt: token id 257",
        "line 8: field \"ids\"[1]: found -1", "line 9: prompt: no tokens", "line 10: field \"prompt\": found number",
        "line 11: prompt: 250 tokens and 8 to come exceed the model's context of 256"}) {
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

TEST_F(GenerateAnything, BatchesAndThreadsAndOrderChangeNoByte) {
  std::string input;
  std::string reversed;
  for (int i = 0; i < 40; i++) {
    const std::string line =
        Json({{"prompt", fmt::format("shared beginning of all prompts, number {}", i % 13)}}).dump();
    input += line + "\n";
    reversed = line + "\n" + reversed;
  }
  const std::vector<std::string> flags = {"--n",        "3", "--temperature", "0.9", "--max-new-tokens", "30",
                                          "--logprobs", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), flags.begin(), flags.end());
    return more;
  };
  const RunResult one = Run(with({"--max-batch", "1"}), input);
  ASSERT_EQ(one.exit.code, 0) << one.err;
  ASSERT_EQ(LineCount(one.out), 40);
  EXPECT_EQ(Run(with({"--max-batch", "16"}), input).out, one.out);
  // A budget of one MiB holds 1024 of the fake model's blocks; 6 sequences of 2 blocks fit easily, 16 as well.
  EXPECT_EQ(Run(with({"--max-batch", "7", "--kv-memory-mib", "1", "--threads", "3"}), input).out, one.out);
  auto forward = Rows(one.out);
  std::reverse(forward.begin(), forward.end());
  EXPECT_EQ(Rows(Run(with({}), reversed).out), forward);
}

// On a full disk, or when the reader has gone, what nobody will see is not computed.
TEST_F(GenerateAnything, NothingIsSampledOnceTheOutputIsBroken) {
  std::string input;
  for (int i = 0; i < 60; i++) input += fmt::format("{{\"prompt\":\"line {}\"}}\n", i);
  ASSERT_TRUE(WriteFileAtomic(dir_.File("in.jsonl"), input).ok());
  ChildOptions options;
  options.argv = {"/bin/sh", "-c",
                  fmt::format("exec {} generate --model {} --numerics fake --max-batch 1 --max-new-tokens 200 "
                              "--ignore-eos --stats {} > /dev/full",
                              IHA_TOOL, dir_.path(), dir_.File("in.jsonl"))};
  const auto run = RunChild(options, "", {.timeout = absl::Minutes(9)});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit.code, 4);
  EXPECT_THAT(run->err, StartsWith("iha-tool generate: standard output: cannot be written\n"));
  const size_t at = run->err.find(" prompt tokens, ");
  ASSERT_NE(at, std::string::npos) << run->err;
  EXPECT_LT(std::atoi(run->err.c_str() + at + 16), 60 * 200 / 2) << run->err;
}

TEST_F(GenerateAnything, SamplesDifferByIndexAndSeedOnly) {
  const std::string input = "{\"prompt\":\"Question\"}\n";
  const std::vector<std::string> sampled = {"--temperature", "1", "--max-new-tokens", "40", "--n"};
  const auto with_n = [&](const std::string& n, std::vector<std::string> more = {}) {
    std::vector<std::string> flags = sampled;
    flags.push_back(n);
    flags.insert(flags.end(), more.begin(), more.end());
    return RowsOf(flags, input)[0]["samples"];
  };
  const Json four = with_n("4");
  ASSERT_EQ(four.size(), 4u);
  EXPECT_NE(four[0], four[1]);
  const Json two = with_n("2");
  EXPECT_EQ(two[0], four[0]);
  EXPECT_EQ(two[1], four[1]);
  EXPECT_NE(with_n("1", {"--seed", "7"})[0], four[0]);
  EXPECT_EQ(with_n("1", {"--seed", "1234"})[0], four[0]);
  // One token left: temperature is without effect.
  EXPECT_EQ(with_n("2", {"--top-k", "1"})[1], RowsOf({"--max-new-tokens", "40"}, input)[0]["samples"][0]);
}

TEST_F(Generate, StopStringsCutTheText) {
  const std::string input = "{\"prompt\":\"Q\"}\n";
  const Json whole = RowsOf({"--ignore-eos", "--max-new-tokens", "60"}, input)[0]["samples"][0];
  const std::string text = whole["text"];
  ASSERT_GE(text.size(), 12u);
  const std::string stop = text.substr(8, 3);
  const size_t at = text.find(stop);
  const Json cut = RowsOf({"--ignore-eos", "--max-new-tokens", "60", "--stop", "never there", "--stop", stop},
                          input)[0]["samples"][0];
  EXPECT_EQ(cut["text"], text.substr(0, at));
  EXPECT_EQ(cut["finish_reason"], "stop");
  EXPECT_EQ(cut["ids"].size(), at + 3);  // the fake model's tokens are bytes; those of the stop string are kept
}

TEST_F(Generate, EosEndsUnlessIgnored) {
  // Some of the prompts must end by eos within 200 tokens, or this checks nothing.
  std::string input;
  for (int i = 0; i < 20; i++) input += Json({{"prompt", fmt::format("Problem {}", i)}}).dump() + "\n";
  int ended = 0;
  for (const Json& row : RowsOf({"--max-new-tokens", "200"}, input)) {
    const Json& sample = row["samples"][0];
    if (sample["finish_reason"] != "eos") continue;
    ended++;
    EXPECT_EQ(sample["ids"].back(), 256);
    EXPECT_THAT(sample["text"].get<std::string>(), Not(HasSubstr("<|eos|>")));
  }
  EXPECT_GT(ended, 0);
  for (const Json& row : RowsOf({"--max-new-tokens", "200", "--ignore-eos"}, input)) {
    EXPECT_EQ(row["samples"][0]["finish_reason"], "length");
    EXPECT_EQ(row["samples"][0]["ids"].size(), 200u);
  }
}

TEST_F(Generate, LogprobsStandBesideEachToken) {
  const Json sample =
      RowsOf({"--logprobs", "3", "--max-new-tokens", "5", "--ignore-eos"}, "{\"prompt\":\"Q\"}\n")[0]["samples"][0];
  ASSERT_EQ(sample["logprobs"].size(), 5u);
  for (size_t i = 0; i < 5; i++) {
    const Json& score = sample["logprobs"][i];
    EXPECT_EQ(score["id"], sample["ids"][i]);
    ASSERT_EQ(score["top"].size(), 3u);
    EXPECT_EQ(score["top"][0]["id"], score["id"]);  // greedy
    EXPECT_EQ(score["top"][0]["logprob"], score["logprob"]);
    EXPECT_LE(score["logprob"].get<double>(), 0);
    EXPECT_GE(score["top"][0]["logprob"], score["top"][2]["logprob"]);
  }
}

// "" if nothing comes for 15 seconds.
std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  pollfd readable = {.fd = fd, .events = POLLIN, .revents = 0};
  while (c != '\n' && poll(&readable, 1, 15000) == 1 && read(fd, &c, 1) == 1) line += c;
  return line;
}

// A caller may read the answer to a line before it sends the next one.
TEST_F(Generate, AnswersBeforeTheInputEnds) {
  int to_child[2];
  int from_child[2];
  ASSERT_EQ(pipe2(to_child, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(from_child, O_CLOEXEC), 0);
  UniqueFd child_in(to_child[0]), in(to_child[1]), out(from_child[0]), child_out(from_child[1]);
  ChildOptions options;
  options.argv = {IHA_TOOL, "generate", "--model", dir_.path(), "--numerics", "fake", "--max-new-tokens", "4"};
  options.stdin_fd = child_in.get();
  options.stdout_fd = child_out.get();
  auto child = ChildProcess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  child_in.Close();
  child_out.Close();
  for (int i = 0; i < 3; i++) {
    const std::string line = Json({{"id", i}, {"prompt", "again"}}).dump() + "\n";
    ASSERT_EQ(write(in.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    const std::string answer = ReadLine(out.get());
    ASSERT_THAT(answer, StartsWith(fmt::format("{{\"id\":{},\"samples\":", i)));
  }
  in.Close();
  const auto exit = child->Wait(absl::Minutes(1));
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok()) << exit->ToString();
}

TEST_F(Generate, RefusesWithOneLineAndItsExitCode) {
  const struct {
    std::vector<std::string> flags;
    int code;
    const char* message;
  } cases[] = {
      {{"--top-p", "0"}, 2, "--top-p: found 0; expected above 0, at most 1"},
      {{"--top-p", "nan"}, 2, "--top-p: found nan"},
      {{"--temperature", "-1"}, 2, "--temperature: found -1; expected 0, or 0.0001 and more, below 1e30"},
      {{"--temperature", "1e-9"}, 2, "--temperature"},
      {{"--n", "0"}, 2, "--n"},
      {{"--max-new-tokens", "0"}, 2, "--max-new-tokens"},
      {{"--stop", ""}, 2, "--stop: an empty stop string"},
      {{"--kv-dtype", "f8"}, 2, "--kv-dtype"},
      {{"--temprature", "1"}, 2, "--temprature"},
      {{"/nowhere/lines.jsonl"}, 3, "/nowhere/lines.jsonl: open: No such file or directory"},
      {{"--device", "tpu"}, 2, "--device: found \"tpu\", expected cpu, emulated, cuda or cuda:N"},
      {{"--device", "cuda:128"}, 2, "--device: found \"cuda:128\", expected"},
  };
  for (const auto& [flags, code, message] : cases) {
    const RunResult result = Run(flags, "{\"prompt\":\"a\"}\n");
    EXPECT_EQ(result.exit.code, code) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  const RunResult exact = RunTool({"generate", "--model", dir_.path()});
  EXPECT_EQ(exact.exit.code, 3);
  EXPECT_THAT(exact.err, EndsWith("cannot run a fake checkpoint; use fake\n"));
  const RunResult absent = RunTool({"generate", "--model", "/nowhere"});
  EXPECT_EQ(absent.exit.code, 3);
  EXPECT_THAT(absent.err, HasSubstr("/nowhere"));
}

TEST(IhaTool, SaysWhatItCanDo) {
  EXPECT_EQ(RunTool({}).exit.code, 2);
  const RunResult unknown = RunTool({"generat"});
  EXPECT_EQ(unknown.exit.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"generate\"?"));
  for (const char* command : {"generate", "logits", "check-oracle"}) {
    const RunResult help = RunTool({command, "--help"});
    EXPECT_EQ(help.exit.code, 0);
    EXPECT_THAT(help.out, HasSubstr(std::string("iha-eval ") + command));  // the example
  }
}

}  // namespace
}  // namespace iha::tools
