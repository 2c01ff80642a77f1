// score ruler: predictions judged as NVIDIA's evaluate.py judges them, and what it prints of each task.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "benchmarks/ruler/score.h"
#include "benchmarks/ruler/tasks.h"
#include "cli/command.h"
#include "common/errors.h"
#include "common/jsonl_tool.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

namespace ruler = benchmarks::ruler;
using Json = nlohmann::ordered_json;

struct TaskScores {
  std::vector<Score> scores;  // in row order
  int64_t empty = 0;          // predictions of which nothing is left: upstream's "nulls"
};

class RulerLines {
 public:
  absl::Status Step(const Json& in, Json& out) {
    std::string name;
    std::vector<std::string> references;
    std::string prediction;
    IHA_RETURN_IF_ERROR(GetString(in, "task", name));
    IHA_RETURN_IF_ERROR(GetStrings(in, "outputs", references));
    IHA_RETURN_IF_ERROR(GetString(in, "prediction", prediction));
    const absl::StatusOr<const ruler::Task*> task = ruler::RequireTask(name);
    if (!task.ok()) return Annotate(task.status(), "field \"task\"");
    if (references.empty()) return InvalidArgument("field \"outputs\": is empty; expected one reference or more");
    const Score score = ruler::ScoreOf((*task)->match, ruler::FoundIn(references, prediction));
    out["score"] = static_cast<double>(score.num) / static_cast<double>(score.den);
    TaskScores& tally = by_task_[name];
    tally.scores.push_back(score);
    tally.empty += ruler::CleanPrediction(prediction).empty() ? 1 : 0;
    return absl::OkStatus();
  }

  void PrintSummary() const {
    for (const ruler::Task& task : ruler::Tasks()) {
      const auto at = by_task_.find(std::string(task.name));
      if (at == by_task_.end()) continue;
      std::cerr << fmt::format("{}: {} {} ({} rows, {} empty)\n", task.name, ruler::NameOf(task.match),
                               ruler::OfficialPercent(at->second.scores), at->second.scores.size(), at->second.empty);
    }
  }

 private:
  std::map<std::string, TaskScores> by_task_;
};

int RunRuler(const std::string& file) {
  RulerLines lines;
  const int code = RunJsonlToolOnFile({.name = "iha-eval score ruler",
                                       .consumes = {"task", "outputs", "prediction"},
                                       .step = [&](const Json& in, Json& out) { return lines.Step(in, out); }},
                                      file);
  lines.PrintSummary();
  return code;
}

}  // namespace

void AddScoreRuler(CLI::App& score, Command& command) {
  CLI::App* sub = score.add_subcommand(
      "ruler", "{\"task\",\"outputs\",\"prediction\"} to {\"score\"}, and each task's score on stderr");
  const auto file = std::make_shared<std::string>("-");
  sub->add_option("file", *file, "JSON Lines file; - = stdin");
  sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  sub->footer(
      "Example:\n  echo '{\"task\":\"niah_single_1\",\"outputs\":[\"8231342\"],\"prediction\":\" 8231342.\"}' | "
      "iha-eval score ruler");
  sub->callback([file, &command] { command.exit_code = RunRuler(*file); });
}

}  // namespace iha::cli
