// regrade: a sweep's stored texts through this program's graders; new rows beside the old ones.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "benchmarks/graders/graders.h"
#include "benchmarks/graders/tool_judge.h"
#include "cli/command.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "coordinator/ingest/regrade.h"
#include "coordinator/service/service.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;
using coordinator::RegradedJob;
using coordinator::RegradedMetric;

struct Flags {
  std::string db;
  std::string sweep;
  int jobs = 0;  // 0 = all cores
  bool json = false;
};

// Starts iha-tool with the first benchmark of programs: most sweeps have none. Thread: asked by main before it grades.
class LazyToolJudge final : public benchmarks::CodeJudge {
 public:
  LazyToolJudge(std::string tool, int jobs) : tool_(std::move(tool)), jobs_(jobs) {}

  absl::Status Ready() override {
    if (judge_ == nullptr) {
      IHA_ASSIGN_OR_RETURN(judge_, benchmarks::ToolJudge::Start(tool_, jobs_));
    }
    return judge_->Ready();
  }
  absl::StatusOr<benchmarks::CodeVerdict> Judge(const benchmarks::CodeTask& task, const std::string& candidate,
                                                benchmarks::CodeRule rule) override {
    return judge_->Judge(task, candidate, rule);
  }
  int parallel() const override { return judge_ == nullptr ? 1 : judge_->parallel(); }

 private:
  const std::string tool_;
  const int jobs_;
  std::unique_ptr<benchmarks::ToolJudge> judge_;
};

// "HumanEval: 12/164 items" in place, on a terminal only.
std::function<void(const JobSpec&, int64_t, int64_t)> Progress(bool shown) {
  if (!shown) return {};
  return [](const JobSpec& job, int64_t done, int64_t items) {
    std::cerr << TerminalSafe(
                     fmt::format("{} · {}: {}/{} items", job.model.name, job.entry.benchmark.name, done, items))
              << (done == items ? "\r\033[K" : "\033[K\r") << std::flush;
  };
}

struct Regraded {
  std::vector<RegradedJob> jobs;
  bool sequential = false;  // its sweep has an item_order: a mean of what is there is no result
};

absl::StatusOr<Regraded> Regrade(const Flags& flags, const Command& command) {
  IHA_ASSIGN_OR_RETURN(const std::string guard, benchmarks::FindMathGuard());
  SweepId sweep;
  Regraded out;
  {
    // A missing file must not be created.
    IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
    IHA_ASSIGN_OR_RETURN(sweep, coordinator::FindSweepByPrefix(*store, flags.sweep));
    IHA_RETURN_IF_ERROR(store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
      IHA_ASSIGN_OR_RETURN(const std::optional<coordinator::SweepRecord> record, txn.FindSweep(sweep));
      out.sequential = record.has_value() && record->spec.item_order.has_value();
      return absl::OkStatus();
    }));
  }
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStore({.path = flags.db}));
  const auto judge = std::make_shared<LazyToolJudge>(command.program_folder + "/iha-tool", flags.jobs);
  auto graders = std::make_shared<benchmarks::Graders>(
      benchmarks::GraderOptions{.libraries = command.graders, .guard = guard, .judge = judge});
  IHA_ASSIGN_OR_RETURN(
      out.jobs, coordinator::RegradeSweep(*store, sweep, coordinator::OpenerFor(command.data_root, std::move(graders)),
                                          {.judge = judge.get(), .progress = Progress(command.progress)}));
  return out;
}

Json MeanJson(const scoring::Rational& sum, int64_t scored, bool sequential) {
  return scored == 0 || sequential ? Json(nullptr) : Json((sum / scoring::Rational(scored)).ToDouble());
}

std::string MeanText(const scoring::Rational& sum, int64_t scored, int64_t items, bool sequential) {
  const bool none = scored == 0 || sequential;
  const std::string mean = none ? "–" : (sum * scoring::Rational(100) / scoring::Rational(scored)).ToFixed(1);
  return fmt::format("{} ({}/{})", mean, scored, items);
}

Json JobJson(const RegradedJob& job, bool sequential) {
  Json out = {{"model", job.job.model.name},
              {"benchmark", benchmarks::ToString(job.job.entry.benchmark)},
              {"entry", job.job.entry_index},
              {"before", job.before},
              {"after", job.after.empty() ? Json(nullptr) : Json(job.after)},
              {"runs_code", job.runs_code},
              {"of_checkpoint", job.of_checkpoint},
              {"items", job.items},
              {"changed", job.changed},
              {"metrics", Json::array()}};
  for (const RegradedMetric& metric : job.metrics) {
    out["metrics"].push_back({{"metric", metric.metric},
                              {"scored_before", metric.scored_before},
                              {"mean_before", MeanJson(metric.sum_before, metric.scored_before, sequential)},
                              {"scored_after", metric.scored_after},
                              {"mean_after", MeanJson(metric.sum_after, metric.scored_after, sequential)}});
  }
  return out;
}

void PrintJob(const RegradedJob& job, bool sequential) {
  const std::string outcome = job.of_checkpoint   ? "not graded again: its references follow from the checkpoint"
                              : job.after.empty() ? std::string("equal to ") + job.before
                                                  : fmt::format("{} of {} changed from {}, stored as {}", job.changed,
                                                                Counted(job.items, "item"), job.before, job.after);
  std::cout << TerminalSafe(fmt::format("{} · {}: {}", job.job.model.name, job.job.entry.benchmark.name, outcome))
            << "\n";
  for (const RegradedMetric& metric : job.metrics) {
    std::cout << fmt::format("  {}: {} -> {}\n", metric.metric,
                             MeanText(metric.sum_before, metric.scored_before, job.items, sequential),
                             MeanText(metric.sum_after, metric.scored_after, job.items, sequential));
  }
}

// For a shell, whatever the text holds.
std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// How to see what was stored, once for each version.
void PrintHow(const std::vector<RegradedJob>& jobs, const Flags& flags) {
  std::set<std::string> versions;
  for (const RegradedJob& job : jobs) {
    if (job.after.empty() || !versions.insert(job.after).second) continue;
    std::cout << TerminalSafe(fmt::format("its table: iha-eval table --db {} --sweep {} --grader {}", Quoted(flags.db),
                                          job.job.sweep.Hex(), Quoted(job.after)))
              << "\n";
  }
}

int RunRegrade(const Flags& flags, const Command& command) {
  const auto regraded = Regrade(flags, command);
  if (!regraded.ok()) return Fail("regrade", regraded.status());
  for (const RegradedJob& job : regraded->jobs) {
    if (flags.json) {
      std::cout << JobJson(job, regraded->sequential).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    } else {
      PrintJob(job, regraded->sequential);
    }
  }
  if (!flags.json) PrintHow(regraded->jobs, flags);
  return kExitOk;
}

}  // namespace

void AddRegrade(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* regrade =
      app.add_subcommand("regrade", "Grade stored texts again; what differs is stored beside, under its own version");
  regrade->add_option("--db", flags->db, "database file")->required();
  regrade->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
  regrade->add_option("--data-root", command.data_root, "benchmark data");
  regrade->add_option("--graders", command.graders, "folder with the libraries of math.minerva and math.prm800k");
  regrade->add_option("--jobs", flags->jobs, "programs at a time, of benchmarks that have some; 0 = all cores")
      ->check(WholeNumber(0, 256));
  regrade->add_flag("--json", flags->json, "JSON Lines: one object a model and benchmark");
  regrade->footer("Example:\n  iha-eval regrade --db out/iha-eval.db --sweep 3f2a");
  regrade->callback([flags, &command] { command.exit_code = RunRegrade(*flags, command); });
}

}  // namespace iha::cli
