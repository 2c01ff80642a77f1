// explain: one item's whole story, from the prompt that was shown to the attempts that its shard took.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "benchmarks/benchmark.h"
#include "cli/choices_json.h"
#include "cli/command.h"
#include "common/child_process.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/jsonl_tool.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "coordinator/store/explain.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "model/tokenizer/tokenizer.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string db;
  std::string sweep;
  std::string model;
  std::string item;  // index or id
  int64_t entry = 0;
  std::optional<int64_t> sample;
  std::string grader;
  std::string checkpoint;
  bool run = false;
  bool json = false;
};

// Digits are an index; anything else is the id that the benchmark gives the item, whatever the case of its letters.
absl::StatusOr<int64_t> IndexOf(const std::string& item, const benchmarks::Benchmark& benchmark, int64_t items) {
  int64_t index = 0;
  if (absl::SimpleAtoi(item, &index)) return index;
  for (index = 0; index < std::min(items, benchmark.size()); index++) {
    if (absl::EqualsIgnoreCase(benchmark.ItemId(index), item)) return index;
  }
  return InvalidArgument("--item: found {}; the job has {} items: an index from 0, or an id, {} to {}",
                         TerminalSafe(item, 80), items, benchmark.ItemId(0),
                         benchmark.ItemId(std::min(items, benchmark.size()) - 1));
}

// The prompt is not stored, only the digest of all of them: what is shown again must be what was shown.
absl::Status AddPrompt(const JobSpec& job, int64_t item, const benchmarks::Benchmark& benchmark, Json& out) {
  const Digest now = benchmarks::PromptDigest(benchmark, job.items);
  if (now != job.prompt_digest) {
    return FailedPrecondition(
        "prompts of {}: stored digest {}, this version and data give {}; use the version and data of the run",
        job.entry.benchmark.name, job.prompt_digest.Hex(), now.Hex());
  }
  const benchmarks::Prompt prompt = benchmark.Render(item);
  out["prompt_digest"] = now.Hex();
  const bool unknown = benchmark.info().item_tokens > 0 && prompt.text.empty();  // without --checkpoint
  if (prompt.messages.empty() && !unknown) {
    out["prompt"] = prompt.text;
    if (!prompt.choices.empty()) out["choices"] = prompt.choices;
  } else {
    for (const benchmarks::Message& m : prompt.messages) {
      out["messages"].push_back({{"role", m.role}, {"content", m.content}});
    }
  }
  out["stops"] = prompt.stops;
  out["gold"] = benchmark.Gold(item);
  return absl::OkStatus();
}

std::string Fraction(const Score& score) {
  return score.den == 1 ? std::to_string(score.num) : fmt::format("{}/{}", score.num, score.den);
}

// What the sandbox says of the program now: `score --show` of iha-tool, which has one. Unavailable: it can't be run
// here.
absl::StatusOr<Json> RunAgain(const std::string& tool, const std::string& data_root, const std::string& benchmark,
                              const std::string& item_id, const std::string& candidate) {
  ChildOptions options;
  options.argv = {tool,          "score",  benchmark.starts_with("humaneval") ? "humaneval" : "mbpp",
                  "--show",      "--jobs", "1",
                  "--data-root", data_root};
  if (benchmark == "mbpp_sanitized") options.argv.push_back("--sanitized");
  const std::string line = JsonLine(Json{{"task_id", item_id}, {"solution", candidate}});
  // A program and two outputs of 64 KiB, each byte of them six where it is escaped.
  constexpr size_t kMaxAnswer = size_t{64} << 20;
  IHA_ASSIGN_OR_RETURN(const RunResult run, RunChild(options, line, {.stdout_bytes = kMaxAnswer}));
  if (!run.exit.ok()) return Unavailable("--run: {}", TerminalSafe(run.err, 500));
  const Json scored = Json::parse(run.out, nullptr, false);
  if (!scored.is_object()) return Internal("--run: iha-tool's answer is not a JSON object");
  Json out = Json::object();
  for (const char* key : {"result", "reason", "detail", "stdout", "stderr"}) out[key] = scored.value(key, "");
  return out;
}

// `choices`: of the prompt; empty where the text was drawn.
Json SampleJson(const SampleResult& sample, const Generation& generation, size_t index,
                const std::vector<std::string>& choices, const benchmarks::CodeSample& code) {
  Json out = {{"sample", index}, {"generation", generation.key.Hex()}, {"checksum", generation.Checksum().Hex()}};
  const auto scores = choices.empty() ? std::nullopt : ChoicesJson(generation.text, choices);
  if (scores.has_value()) {
    out["choices"] = *scores;
  } else {
    out["text"] = generation.text;
    out["finish_reason"] = NameOf(generation.finish);
    if (!code.program.empty()) out["program"] = code.program;
  }
  out["prompt_tokens"] = generation.prompt_tokens;
  out["tokens"] = generation.tokens.size();
  out["grades"] = Json::array();
  for (const SampleGrade& grade : sample.grades) {
    out["grades"].push_back({{"metric", grade.metric},
                             {"state", NameOf(grade.unscored)},
                             {"score", Fraction(grade.score)},
                             {"extracted", grade.valid ? Json(grade.extracted) : Json(nullptr)},
                             {"group", grade.group >= 0 ? Json(grade.group) : Json(nullptr)},
                             {"reason", grade.reason}});
  }
  return out;
}

absl::Status AddResult(const coordinator::ItemStory& story, const benchmarks::Benchmark& benchmark, const Flags& flags,
                       const std::string& data_root, const std::string& tool, Json& out) {
  const ItemResult& item = *story.item;
  const auto samples = static_cast<int64_t>(item.samples.size());
  if (flags.sample.has_value() && (*flags.sample < 0 || *flags.sample >= samples)) {
    return InvalidArgument("--sample: found {}; item {} has {} samples, counted from 0", *flags.sample, item.index,
                           samples);
  }
  const auto choices =
      out.contains("choices") ? out["choices"].get<std::vector<std::string>>() : std::vector<std::string>();
  out["item_id"] = item.item_id;
  out["item_hash"] = story.item_hash.Hex();
  const SweepEntry& entry = story.job.spec.entry;
  if (entry.stop_settled_votes) out["votes_settled"] = {{"by", samples}, {"of", entry.sampling.samples}};
  out["samples"] = Json::array();
  for (size_t s = 0; s < item.samples.size(); s++) {
    if (flags.sample.has_value() && *flags.sample != static_cast<int64_t>(s)) continue;
    const benchmarks::CodeSample code = benchmark.Code(item.index, story.generations[s].text);
    out["samples"].push_back(SampleJson(item.samples[s], story.generations[s], s, choices, code));
    if (!flags.run) continue;
    if (code.program.empty()) return InvalidArgument("--run: {} has no programs", benchmark.info().name);
    IHA_ASSIGN_OR_RETURN(out["samples"].back()["ran"],
                         RunAgain(tool, data_root, benchmark.info().name, item.item_id, code.candidate));
  }
  out["values"] = Json::array();
  for (const ItemValue& value : item.values) {
    out["values"].push_back({{"metric", value.metric},
                             {"state", NameOf(value.unscored)},
                             {"score", Fraction(value.score)},
                             {"winner", value.winner},
                             {"tie", Fraction(value.tie)},
                             {"invalid", value.invalid}});
  }
  return absl::OkStatus();
}

// The benchmark as workers have it: where its items follow from the checkpoint's tokenizer, with that of --checkpoint.
absl::StatusOr<std::unique_ptr<const benchmarks::Benchmark>> WithItem(
    std::unique_ptr<const benchmarks::Benchmark> benchmark, const Flags& flags, int64_t index) {
  if (benchmark->info().item_tokens == 0 || flags.checkpoint.empty()) return benchmark;
  IHA_ASSIGN_OR_RETURN(auto tokenizer, tokenizer::Tokenizer::Load(flags.checkpoint));
  IHA_ASSIGN_OR_RETURN(const auto items,
                       benchmark->ForCheckpoint({.tokenizer = std::move(tokenizer), .items = index + 1}));
  return items->Items({.begin = index, .end = index + 1});
}

absl::StatusOr<Json> Story(const Flags& flags, const std::string& data_root, const std::string& tool) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(*store, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const coordinator::JobRecord record,
                       coordinator::FindJob(*store, sweep, flags.model, flags.entry));
  IHA_ASSIGN_OR_RETURN(auto benchmark, benchmarks::OpenBenchmark(record.spec.entry.benchmark, data_root));
  IHA_ASSIGN_OR_RETURN(const int64_t index, IndexOf(flags.item, *benchmark, record.spec.items));
  IHA_ASSIGN_OR_RETURN(benchmark, WithItem(std::move(benchmark), flags, index));
  IHA_ASSIGN_OR_RETURN(const coordinator::ItemStory story,
                       coordinator::ReadItemStory(*store, sweep, flags.model, flags.entry, index, flags.grader));
  const JobSpec& job = story.job.spec;
  Json out = {{"sweep", sweep.Hex()},
              {"job", story.job.id.Hex()},
              {"model", job.model.name},
              {"benchmark", benchmarks::ToString(job.entry.benchmark)},
              {"benchmark_version", job.benchmark_version},
              {"grader_version", flags.grader.empty() ? job.grader_version : flags.grader},
              {"gradings", story.gradings},
              {"numerics_id", job.numerics_id},
              {"weights_digest", story.weights.empty() ? "" : story.weights.Hex()},
              {"tokenizer_digest", story.tokenizer.empty() ? "" : story.tokenizer.Hex()},
              {"data_digest", job.data_digest.Hex()},
              {"entry", flags.entry},
              {"index", index}};
  out["state"] = NameOf(story.item.has_value() ? story.item->unscored : Unscored::kPending);
  IHA_RETURN_IF_ERROR(AddPrompt(job, index, *benchmark, out));
  if (story.item.has_value()) IHA_RETURN_IF_ERROR(AddResult(story, *benchmark, flags, data_root, tool, out));
  out["attempts"] = Json::array();
  for (const coordinator::AttemptRecord& attempt : story.attempts) {
    out["attempts"].push_back({{"shard", static_cast<int64_t>(attempt.shard)},
                               {"epoch", attempt.fence.epoch},
                               {"event", NameOf(attempt.event)},
                               {"permanent", attempt.permanent},
                               {"worker", attempt.worker.value},
                               {"reason", attempt.reason},
                               {"at", absl::FormatTime(absl::RFC3339_sec, attempt.at, absl::UTCTimeZone())}});
  }
  return out;
}

// Every field on its own line, long texts below their names, whatever they contain made safe.
void PrintText(const Json& json, const std::string& indent) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_array() && !value.empty() && value.front().is_object()) {
      for (const Json& element : value) {
        std::cout << indent << key << "\n";
        PrintText(element, indent + "  ");
      }
      continue;
    }
    const std::string text =
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    // Most metrics vote on nothing, and most grades need no reason.
    if (text.empty() && (key == "winner" || key == "reason")) continue;
    if (text.find('\n') == std::string::npos) {
      std::cout << indent << key << ": " << TerminalSafe(text) << "\n";
      continue;
    }
    std::cout << indent << key << ":\n";
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::cout << indent << "  | " << TerminalSafe(std::string_view(text).substr(at, end - at)) << "\n";
      at = end + 1;
    }
  }
}

int RunExplain(const Flags& flags, const std::string& data_root, const std::string& tool) {
  const auto story = Story(flags, data_root, tool);
  if (!story.ok()) return Fail("explain", story.status());
  if (flags.json) {
    std::cout << story->dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    PrintText(*story, "");
  }
  return kExitOk;
}

}  // namespace

void AddExplain(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* explain = app.add_subcommand("explain", "One item's whole story: prompt, texts, grades, digests, attempts");
  explain->add_option("--db", flags->db, "database file")->required();
  explain->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
  explain->add_option("--model", flags->model, "model, as tables name it")->required();
  explain->add_option("--item", flags->item, "the item: its index, from 0, or its id (HumanEval/0)")->required();
  explain->add_option("--entry", flags->entry, "which of the sweep's benchmarks, from 0; default 0")
      ->check(WholeNumber(0, INT32_MAX));
  explain->add_option("--sample", flags->sample, "this sample only, from 0")->check(WholeNumber(0, INT32_MAX));
  explain->add_option("--grader", flags->grader, "by the rows that regrade stored under this version");
  explain->add_option("--data-root", command.data_root, "benchmark data");
  explain->add_option("--checkpoint", flags->checkpoint,
                      "RULER: the model's folder, whose tokenizer its prompts follow from; without it none is shown");
  explain->add_flag("--run", flags->run,
                    "benchmarks of programs: runs each shown one again, and shows what it printed");
  explain->add_flag("--json", flags->json, "one JSON object");
  explain->footer(
      "Example:\n  iha-eval explain --db out/iha-eval.db --sweep 3f2a --model SmolLM2 --item 17 --sample 0");
  explain->callback([flags, &command] {
    command.exit_code = RunExplain(*flags, command.data_root, command.program_folder + "/iha-tool");
  });
}

}  // namespace iha::cli
