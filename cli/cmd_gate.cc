// gate: did the candidate get worse than the baseline? And export --baseline, which fixes what it is held against.
#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/gate/baseline_commands.h"
#include "cli/gate/stored_run.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/baseline_json.h"
#include "reports/gate.h"
#include "reports/gate_render.h"

namespace iha::cli {
namespace {

struct Flags {
  std::string db;
  std::string candidate;
  std::string baseline;
  std::vector<std::string> metrics;
  std::string margin = "auto";
  std::string inconclusive = "exit6";
  reports::MarginRule rule;
  std::string junit;
  std::string markdown;
  bool github = false;
  bool sequential = false;
  std::string target = "population";
  bool json = false;
};

absl::StatusOr<std::optional<double>> MarginFlag(const std::string& text) {
  if (text == "auto") return std::nullopt;
  double points = 0.0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, points);
  if (error != std::errc() || at != end || !(points > 0.0) || points > 100.0) {
    return InvalidArgument("--margin: found \"{}\", expected auto or points above 0, at most 100", text);
  }
  return points / 100.0;
}

// What exists as a file is one; everything else must be SWEEP/MODEL.
bool IsFile(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored);
}

absl::StatusOr<reports::GateRun> ReadBaseline(const Flags& flags, coordinator::Store& store) {
  if (IsFile(flags.baseline)) {
    IHA_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(flags.baseline));
    IHA_ASSIGN_OR_RETURN(reports::Baseline bundle, reports::ParseBaseline(text, flags.baseline));
    return std::move(bundle.run);
  }
  IHA_ASSIGN_OR_RETURN(const RunName name, ParseRunName(flags.baseline, "--baseline (no file of that name)"));
  IHA_ASSIGN_OR_RETURN(reports::GateRun run, ReadStoredRun(store, name));
  reports::FixMargins(run, flags.rule);
  return run;
}

struct Sides {
  reports::GateRun candidate;
  reports::GateRun baseline;
};

absl::StatusOr<Sides> ReadSides(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const RunName name, ParseRunName(flags.candidate, "--candidate"));
  Sides sides;
  IHA_ASSIGN_OR_RETURN(sides.candidate, ReadStoredRun(*store, name));
  IHA_ASSIGN_OR_RETURN(sides.baseline, ReadBaseline(flags, *store));
  return sides;
}

reports::GateOptions OptionsOf(const Flags& flags, const std::optional<double>& margin) {
  return {.metrics = flags.metrics, .alpha = flags.rule.alpha, .power = flags.rule.power, .margin = margin};
}

absl::Status Write(const Flags& flags, const reports::GateReport& report) {
  if (!flags.junit.empty()) {
    const bool passes = flags.inconclusive == "pass";
    IHA_RETURN_IF_ERROR(WriteFileAtomic(flags.junit, reports::RenderGateJunit(report, passes)));
  }
  if (!flags.markdown.empty())
    IHA_RETURN_IF_ERROR(WriteFileAtomic(flags.markdown, reports::RenderGateMarkdown(report)));
  (flags.json ? std::cerr : std::cout) << reports::RenderGateText(report);
  // Annotations are read from the step's output, wherever the report itself goes.
  if (flags.github) (flags.json ? std::cerr : std::cout) << reports::RenderGateGithub(report);
  if (flags.json) std::cout << reports::RenderGateJson(report);
  return absl::OkStatus();
}

int ExitCodeOf(reports::Verdict verdict, const std::string& inconclusive) {
  if (verdict == reports::Verdict::kPass) return kExitOk;
  if (verdict == reports::Verdict::kFail) return kExitCheckFailed;
  if (inconclusive == "pass") return kExitOk;
  return inconclusive == "fail" ? kExitCheckFailed : kExitInconclusive;
}

int RunSequential(const Flags& flags, const Sides& sides, const reports::GateOptions& options) {
  const auto report = reports::EvaluateSequentially(sides.candidate, sides.baseline,
                                                    {.gate = options, .benchmark = flags.target == "benchmark"});
  if (!report.ok()) return Fail("gate", report.status());
  (flags.json ? std::cerr : std::cout) << reports::RenderSequentialText(*report);
  if (flags.json) std::cout << reports::RenderSequentialJson(*report);
  return ExitCodeOf(report->verdict, flags.inconclusive);
}

int RunGate(const Flags& flags) {
  const auto margin = MarginFlag(flags.margin);
  if (!margin.ok()) return FailUsage("gate", margin.status());
  if (flags.sequential && (!flags.junit.empty() || !flags.markdown.empty() || flags.github)) {
    return FailUsage("gate",
                     InvalidArgument("--sequential: prints text or --json; not with --junit, --markdown, --github"));
  }
  const auto sides = ReadSides(flags);
  if (!sides.ok()) return Fail("gate", sides.status());
  const reports::GateOptions options = OptionsOf(flags, *margin);
  if (flags.sequential) return RunSequential(flags, *sides, options);
  const auto report = reports::EvaluateGate(sides->candidate, sides->baseline, options);
  if (!report.ok()) return Fail("gate", report.status());
  if (const absl::Status status = Write(flags, *report); !status.ok()) return Fail("gate", status);
  return ExitCodeOf(report->verdict, flags.inconclusive);
}

void AddMarginRule(CLI::App& app, reports::MarginRule& rule) {
  app.add_option("--alpha", rule.alpha, "error rate of each one-sided claim; default 0.05")
      ->check(RealNumber(1e-6, 0.4));
  app.add_option("--power", rule.power, "of the test that an unchanged candidate passes; default 0.8")
      ->check(RealNumber(0.5, 0.999));
  app.add_option("--discordance", rule.discordance,
                 "share of items assumed to change where one sample an item can't tell; default 0.10")
      ->check(RealNumber(0.001, 1));
}

struct ExportFlags {
  std::string db;
  std::string name;  // SWEEP/MODEL, or empty: --sweep and --model
  std::string sweep;
  std::string model;
  std::string out;
  reports::MarginRule rule;
};

absl::Status CheckWhole(const reports::GateRun& run) {
  for (const reports::GateEntry& entry : run.entries) {
    const auto missing = entry.planned - static_cast<int64_t>(entry.items.size());
    if (missing == 0) continue;
    return FailedPrecondition(
        "{}: {} of {} items are not there yet; finish the sweep first (run it again with the same "
        "arguments)",
        reports::BriefName(entry), missing, entry.planned);
  }
  return absl::OkStatus();
}

absl::Status ExportBaseline(const ExportFlags& flags) {
  RunName name{flags.sweep, flags.model};
  if (!flags.name.empty()) {
    IHA_ASSIGN_OR_RETURN(name, ParseRunName(flags.name, "--baseline"));
  }
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(reports::GateRun run, ReadStoredRun(*store, name));
  IHA_RETURN_IF_ERROR(CheckWhole(run));
  reports::FixMargins(run, flags.rule);
  const std::string text = reports::RenderBaseline(run, flags.rule);
  if (flags.out != "-") return WriteFileAtomic(flags.out, text);
  std::cout << text << std::flush;
  return absl::OkStatus();
}

int RunExportBaseline(const ExportFlags& flags) {
  const bool by_parts = !flags.sweep.empty() && !flags.model.empty();
  if (flags.db.empty() || flags.out.empty()) {
    return FailUsage("export", InvalidArgument("--baseline: --db and --out are required"));
  }
  if (flags.name.empty() != by_parts) {
    return FailUsage("export", InvalidArgument("--baseline: expected SWEEP/MODEL, or --sweep and --model"));
  }
  const absl::Status status = ExportBaseline(flags);
  if (!status.ok()) return Fail("export --baseline", status);
  return kExitOk;
}

}  // namespace

void AddBaselineExport(CLI::App& group, Command& command) {
  const auto flags = std::make_shared<ExportFlags>();
  CLI::Option* baseline =
      group.add_option("--baseline", flags->name, "SWEEP/MODEL: the bundle that gate compares with, margins fixed")
          ->expected(0, 1);
  group.add_option("--db", flags->db, "database file");
  group.add_option("--sweep", flags->sweep, "with --baseline alone: sweep id, or a prefix that is unique");
  group.add_option("--model", flags->model, "with --baseline alone: model, as tables name it");
  group.add_option("--out", flags->out, "file to write; - = stdout");
  AddMarginRule(group, flags->rule);
  group.callback([flags, baseline, &group, &command] {
    if (!group.get_subcommands().empty()) return;  // which has a callback of its own
    if (baseline->count() == 0) {
      command.exit_code =
          FailUsage("export", InvalidArgument("expected --baseline or a subcommand; see export --help"));
      return;
    }
    command.exit_code = RunExportBaseline(*flags);
  });
}

void AddGate(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* gate =
      app.add_subcommand("gate", "Did the candidate get worse? PASS, FAIL (exit 5) or INCONCLUSIVE (exit 6)");
  gate->add_option("--db", flags->db, "database file")->required();
  gate->add_option("--candidate", flags->candidate, "SWEEP/MODEL")->required();
  gate->add_option("--baseline", flags->baseline, "a file that export --baseline wrote, or SWEEP/MODEL")->required();
  gate->add_option("--metrics", flags->metrics, "these metrics only, separated by commas; default all of the baseline")
      ->delimiter(',');
  gate->add_option("--margin", flags->margin,
                   "largest loss that still passes, in points; default auto: the baseline's own");
  AddMarginRule(*gate, flags->rule);
  gate->add_option("--inconclusive", flags->inconclusive, "what INCONCLUSIVE means: exit6 (default), pass or fail")
      ->check(CLI::IsMember({"exit6", "pass", "fail"}));
  gate->add_option("--junit", flags->junit, "also writes the verdicts as JUnit XML");
  gate->add_option("--markdown", flags->markdown, "also writes them as a comment for a merge request");
  gate->add_flag("--github", flags->github, "also prints GitHub annotations");
  gate->add_flag("--sequential", flags->sequential,
                 "looks after every item, in a seeded random order: certain as early as can be; also on part of a run");
  gate->add_option("--target", flags->target,
                   "with --sequential: population (default) or benchmark, its own items alone")
      ->check(CLI::IsMember({"population", "benchmark"}));
  gate->add_flag("--json", flags->json, "one JSON object on stdout, the text on stderr");
  gate->footer(
      "Example:\n  iha-eval gate --db sweeps.db --candidate 3f2a/step-9000 --baseline baseline.json --junit gate.xml");
  gate->callback([flags, &command] { command.exit_code = RunGate(*flags); });
}

}  // namespace iha::cli
