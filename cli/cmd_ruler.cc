// ruler generate: rows of RULER as files in NVIDIA's format, one for each length and task.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/ruler/generate.h"
#include "benchmarks/ruler/tasks.h"
#include "benchmarks/ruler/templates.h"
#include "benchmarks/ruler/texts.h"
#include "cli/command.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

namespace ruler = benchmarks::ruler;
using Json = nlohmann::ordered_json;

constexpr const char* kName = "ruler generate";

struct Flags {
  std::vector<std::string> tasks;
  std::vector<int64_t> lengths;
  int64_t samples = 500;
  uint64_t seed = 42;
  std::string mode = "official";
  std::string sentences = "punkt";
  std::string chat = "base";
  std::string tokenizer;
  std::string out;
  std::string cache;
  int threads = 1;
  bool json = false;
};

template <class T>
absl::Status CheckNoneTwice(const char* flag, std::vector<T> values) {
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  return twice == values.end() ? absl::OkStatus() : InvalidArgument("{}: {} is there twice", flag, *twice);
}

absl::StatusOr<std::vector<std::string>> TaskNames(const Flags& flags) {
  std::vector<std::string> names;
  for (const std::string& name : flags.tasks) {
    if (name == "all") {
      for (const ruler::Task& task : ruler::Tasks()) names.emplace_back(task.name);
      continue;
    }
    IHA_RETURN_IF_ERROR(ruler::RequireTask(name).status());
    names.push_back(name);
  }
  IHA_RETURN_IF_ERROR(CheckNoneTwice("--tasks", names));
  IHA_RETURN_IF_ERROR(CheckNoneTwice("--lengths", flags.lengths));
  return names;
}

// Everything but task and length.
absl::StatusOr<ruler::RulerOptions> CommonOptions(const Flags& flags, const std::string& data_root) {
  ruler::RulerOptions options;
  options.seed = flags.seed;
  options.mode = flags.mode == "seeded" ? ruler::Mode::kSeeded : ruler::Mode::kOfficial;
  options.sentences = flags.sentences == "simple" ? ruler::Sentences::kSimple : ruler::Sentences::kPunkt;
  options.samples = flags.samples;
  options.cache_dir = flags.cache;
  options.threads = flags.threads;
  options.data_root = data_root;
  options.texts = std::make_shared<ruler::Texts>(data_root);
  if (flags.tokenizer != "whitespace") {
    IHA_ASSIGN_OR_RETURN(options.tokenizer, tokenizer::Tokenizer::Load(flags.tokenizer));
  }
  absl::StatusOr<ruler::ChatTexts> chat = ruler::MakeChatTexts(flags.chat, options.tokenizer.get());
  if (!chat.ok()) return Annotate(chat.status(), flags.tokenizer);
  options.chat = *std::move(chat);
  return options;
}

struct Written {
  std::string path;
  int64_t rows = 0;
  int64_t over_length = 0;  // rows that exceed their length once the tokenizer has added its special tokens
  std::optional<ruler::RowsEnd> end;
  std::string provenance;
};

absl::StatusOr<Written> WriteRows(const ruler::RulerOptions& options, const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto generator, ruler::Generator::Open(options));
  Written written{.path = fmt::format("{}/{}/{}.jsonl", flags.out, options.length, options.task),
                  .rows = 0,
                  .over_length = 0,
                  .end = std::nullopt,
                  .provenance = generator->provenance()};
  const int64_t special = ruler::SpecialTokensAdded(options.chat, options.tokenizer.get());
  std::string lines;
  IHA_ASSIGN_OR_RETURN(written.end, generator->Each(flags.samples, [&](const ruler::RulerRow& row) {
    lines += ruler::ToJsonLine(row);
    lines += '\n';
    ++written.rows;
    if (row.length + special > options.length) ++written.over_length;
    return absl::OkStatus();
  }));
  IHA_RETURN_IF_ERROR(MakeFolders(fmt::format("{}/{}", flags.out, options.length)));
  IHA_RETURN_IF_ERROR(WriteFileAtomic(written.path, lines));
  return written;
}

void Report(const Written& written, const ruler::RulerOptions& options, const Flags& flags) {
  const std::optional<ruler::RowsEnd>& end = written.end;
  if (flags.json) {
    Json line = {{"task", options.task}, {"length", options.length}, {"path", written.path},
                 {"rows", written.rows}, {"planned", flags.samples}, {"over_length", written.over_length},
                 {"end", nullptr}};
    if (end.has_value()) {
      line["end"] = {{"kind", std::string(ruler::EndName(end->kind))}, {"row", end->row}, {"cause", end->cause}};
    }
    if (!written.provenance.empty()) line["provenance"] = written.provenance;
    std::cout << line.dump() << "\n";
  } else {
    std::string more = written.provenance;
    if (written.over_length > 0) {
      more += fmt::format("{}{} exceed their length by the special tokens that the tokenizer adds",
                          more.empty() ? "" : "; ", written.over_length);
    }
    std::cout << fmt::format("{}: {}{}\n", written.path, Counted(written.rows, "row"),
                             more.empty() ? "" : " (" + more + ")");
  }
  if (end.has_value()) {
    Fail(kName, InvalidArgument("{} at {}: row {}: {}: {}; {} of {} kept in {}", options.task, options.length, end->row,
                                ruler::EndName(end->kind), end->cause, written.rows, flags.samples, written.path));
  }
}

int Run(const Flags& flags, const std::string& data_root) {
  const absl::StatusOr<std::vector<std::string>> tasks = TaskNames(flags);
  if (!tasks.ok()) return FailUsage(kName, tasks.status());
  const absl::StatusOr<ruler::RulerOptions> common = CommonOptions(flags, data_root);
  if (!common.ok()) return Fail(kName, common.status());
  std::vector<ruler::RulerOptions> jobs;
  for (const int64_t length : flags.lengths) {
    for (const std::string& task : *tasks) {
      ruler::RulerOptions& job = jobs.emplace_back(*common);
      job.task = task;
      job.length = length;
      // What cannot be made at all is told before anything is written.
      if (const auto opened = ruler::Generator::Open(job); !opened.ok()) return Fail(kName, opened.status());
    }
  }
  int code = kExitOk;
  for (const ruler::RulerOptions& job : jobs) {
    const absl::StatusOr<Written> written = WriteRows(job, flags);
    if (!written.ok()) return Fail(kName, written.status());
    Report(*written, job, flags);
    if (written->end.has_value()) code = kExitBadInput;
  }
  return code;
}

}  // namespace

void AddRuler(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* group = app.add_subcommand("ruler", "RULER, the long-context benchmark");
  group->require_subcommand(1);
  const std::string example =
      "Example:\n  iha-eval ruler generate --tasks niah_single_1,vt --lengths 4096,8192 --samples 20 --tokenizer DIR "
      "--out rows";
  group->footer(example);
  CLI::App* sub = group->add_subcommand("generate", "Rows in NVIDIA's format: OUT/LENGTH/TASK.jsonl");
  sub->add_option("--tasks", flags->tasks, "comma-separated names, or all")->delimiter(',')->default_val("all");
  sub->add_option("--lengths", flags->lengths, "comma-separated; tokens of prompt and generation together")
      ->delimiter(',')
      ->required()
      ->check(WholeNumber(1, int64_t{1} << 24));
  sub->add_option("--samples", flags->samples, "rows of each task and length")
      ->check(WholeNumber(1, 1000000))
      ->default_val(500);
  sub->add_option("--seed", flags->seed, "of the random numbers")->check(WholeNumber(0, INT64_MAX))->default_val(42);
  sub->add_option("--mode", flags->mode, "official: NVIDIA's rows; seeded: each row depends on its number alone")
      ->check(CLI::IsMember({"official", "seeded"}));
  sub->add_option("--sentences", flags->sentences, "how essays are cut: NLTK's Punkt, or behind \". \", \"! \", \"? \"")
      ->check(CLI::IsMember({"punkt", "simple"}));
  sub->add_option("--template", flags->chat, "NVIDIA's chat templates; model = the checkpoint's own")
      ->check(CLI::IsMember({"base", "Phi3", "meta-llama3", "vicuna-chat", "model"}));
  sub->add_option("--tokenizer", flags->tokenizer, "checkpoint folder; whitespace: count words")->required();
  sub->add_option("--out", flags->out, "folder for the rows")->required();
  sub->add_option("--cache-dir", flags->cache, "folder that keeps official rows from run to run");
  sub->add_option("--threads", flags->threads, "seeded rows made at once")->check(WholeNumber(1, 1024));
  sub->add_option("--data-root", command.data_root, "benchmark data; default IHA_EVAL_DATA or ~/.local/share/iha-eval");
  sub->add_flag("--json", flags->json, "JSON Lines: what was written");
  sub->footer(example);
  sub->callback([flags, &command] { command.exit_code = Run(*flags, command.data_root); });
}

}  // namespace iha::cli
