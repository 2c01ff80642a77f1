// gate: did the candidate get worse than the baseline? And export --baseline, which fixes what it is held against.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>

#include "cli/command.h"
#include "cli/coordinator_flags.h"
#include "cli/gate/baseline_commands.h"
#include "cli/gate/gate_flags.h"
#include "cli/gate/sequential_watch.h"
#include "cli/gate/stored_run.h"
#include "cli/run/progress.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "proto/link/address.h"
#include "reports/baseline_json.h"
#include "reports/gate.h"
#include "reports/gate_render.h"

namespace iha::cli {
namespace {

constexpr absl::Duration kFollowEvery = absl::Seconds(1);

struct Flags {
  GateFlags gate;
  std::string db;
  std::string candidate;
  std::string junit;
  std::string markdown;
  bool github = false;
  bool sequential = false;
  CoordinatorFlags coordinator;  // of a sweep that --sequential follows and stops
  bool json = false;
};

struct Sides {
  reports::GateRun candidate;
  reports::GateRun baseline;
};

absl::StatusOr<Sides> ReadSides(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const RunName name, ParseRunName(flags.candidate, "--candidate"));
  Sides sides;
  IHA_ASSIGN_OR_RETURN(sides.candidate, ReadStoredRun(*store, name));
  IHA_ASSIGN_OR_RETURN(sides.baseline, ReadGateBaseline(flags.gate, "--baseline", *store));
  return sides;
}

// To a file, for - to stdout; nothing without a name.
absl::Status WriteOut(const std::string& path, const std::function<std::string()>& render) {
  if (path.empty()) return absl::OkStatus();
  if (path != "-") return WriteFileAtomic(path, render());
  std::cout << render();
  return absl::OkStatus();
}

absl::Status Write(const Flags& flags, const reports::GateReport& report) {
  const bool passes = flags.gate.inconclusive == "pass";
  IHA_RETURN_IF_ERROR(WriteOut(flags.junit, [&] { return reports::RenderGateJunit(report, passes); }));
  IHA_RETURN_IF_ERROR(WriteOut(flags.markdown, [&] { return reports::RenderGateMarkdown(report); }));
  const bool taken = flags.json || flags.junit == "-" || flags.markdown == "-";
  std::ostream& text = taken ? std::cerr : std::cout;
  text << reports::RenderGateText(report);
  // Annotations are read from the step's output, wherever the report itself goes.
  if (flags.github) text << reports::RenderGateGithub(report);
  if (flags.json) std::cout << reports::RenderGateJson(report);
  return absl::OkStatus();
}

int Conclude(const Flags& flags, const absl::StatusOr<reports::SequentialReport>& report) {
  if (!report.ok()) return Fail("gate", report.status());
  PrintSequential(*report, flags.json);
  return ExitCodeOf(report->verdict, flags.gate.inconclusive);
}

// Looks at a running sweep until its verdict is certain, then cancels the rest.
absl::StatusOr<reports::SequentialReport> FollowSweep(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const RunName name, ParseRunName(flags.candidate, "--candidate"));
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(*store, name.sweep));
  IHA_ASSIGN_OR_RETURN(const SweepSpec spec, ReadStoredSpec(*store, sweep));
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  IHA_ASSIGN_OR_RETURN(reports::GateRun known, ReadStoredRun(*store, name));
  known.sweep = sweep.Hex();
  IHA_ASSIGN_OR_RETURN(const auto watch, SequentialWatch::Open(flags.gate, "--baseline", spec, std::move(known), *store,
                                                               connection->clock));
  for (;;) {
    IHA_ASSIGN_OR_RETURN(const SweepProgress progress, connection->api->Status(sweep));
    if (progress.state != "running") return watch->Report();
    IHA_ASSIGN_OR_RETURN(const bool certain, watch->Certain(FinishedItems(progress)));
    if (certain) IHA_RETURN_IF_ERROR(connection->api->Cancel(sweep));
    connection->clock.SleepUntil(connection->clock.Elapsed() + kFollowEvery);
  }
}

absl::Status CheckFlags(const Flags& flags) {
  const std::string& address = flags.coordinator.endpoint.address;
  IHA_RETURN_IF_ERROR(ParseRunName(flags.candidate, "--candidate").status());
  const int on_stdout = (flags.json ? 1 : 0) + (flags.junit == "-" ? 1 : 0) + (flags.markdown == "-" ? 1 : 0);
  if (on_stdout > 1) {
    return InvalidArgument("--json, --junit - and --markdown -: found {} of them, expected one for stdout", on_stdout);
  }
  if (flags.sequential && (!flags.junit.empty() || !flags.markdown.empty() || flags.github)) {
    return InvalidArgument("--sequential: prints text or --json; not with --junit, --markdown, --github");
  }
  if (address.empty()) return absl::OkStatus();
  if (!flags.sequential) return InvalidArgument("--coordinator: needs --sequential");
  return link::CheckAddress("--coordinator", address);
}

int RunGate(const Flags& flags) {
  const auto margin = MarginOf(flags.gate);
  if (!margin.ok()) return FailUsage("gate", margin.status());
  if (const absl::Status status = CheckFlags(flags); !status.ok()) return FailUsage("gate", status);
  if (!flags.coordinator.endpoint.address.empty()) return Conclude(flags, FollowSweep(flags));
  const auto sides = ReadSides(flags);
  if (!sides.ok()) return Fail("gate", sides.status());
  if (flags.sequential) return Conclude(flags, EvaluateInOrder(sides->candidate, sides->baseline, flags.gate));
  const auto report = reports::EvaluateGate(sides->candidate, sides->baseline, GateOptionsOf(flags.gate, *margin));
  if (!report.ok()) return Fail("gate", report.status());
  if (const absl::Status status = Write(flags, *report); !status.ok()) return Fail("gate", status);
  return ExitCodeOf(report->verdict, flags.gate.inconclusive);
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
  const std::vector<std::string> names = reports::EntryNames(reports::Named(run));
  for (size_t e = 0; e < run.entries.size(); e++) {
    const reports::GateEntry& entry = run.entries[e];
    const auto missing = entry.planned - static_cast<int64_t>(entry.items.size());
    if (missing == 0) continue;
    return FailedPrecondition(
        "{}: {} of {} not there yet; finish the sweep first (run it again with the same "
        "arguments)",
        names[e], missing, Counted(entry.planned, "item"));
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
  IHA_RETURN_IF_ERROR(CheckBaseline(run));
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
  gate->add_option("--baseline", flags->gate.baseline, "a file that export --baseline wrote, or SWEEP/MODEL")
      ->required();
  AddGateFlags(*gate, flags->gate);
  gate->add_option("--junit", flags->junit, "also writes the verdicts as JUnit XML; - = on stdout, the text on stderr");
  gate->add_option("--markdown", flags->markdown, "also writes them as a comment for a merge request; - = on stdout");
  gate->add_flag("--github", flags->github, "also prints GitHub annotations");
  gate->add_flag("--sequential", flags->sequential,
                 "looks after every item, in a seeded random order: certain as early as can be; also on part of a run");
  gate->get_option("--target")->needs(gate->get_option("--sequential"));
  AddCoordinatorFlags(*gate, flags->coordinator);
  gate->get_option("--coordinator")
      ->description(
          "with --sequential: follows the sweep that runs there, over the same --db, and cancels the rest of it");
  gate->add_flag("--json", flags->json, "one JSON object on stdout, the text on stderr");
  gate->footer(
      "Example:\n  iha-eval gate --db sweeps.db --candidate 3f2a/step-9000 --baseline baseline.json --junit gate.xml");
  gate->callback([flags, &command] { command.exit_code = RunGate(*flags); });
}

}  // namespace iha::cli
