// Commands on a database file: fsck, backup, export samples, and what table and list read with --db.
#include "cli/store_commands.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/benchmark.h"
#include "cli/command.h"
#include "cli/gate/baseline_commands.h"
#include "cli/run/outputs.h"
#include "cli/run/telemetry_report.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "common/version.h"
#include "coordinator/store/backup.h"
#include "coordinator/store/invariants.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/summary.h"

namespace iha::cli {
namespace {

struct FsckFlags {
  std::string db;
  bool json = false;
};

int RunFsck(const FsckFlags& flags) {
  const auto store = coordinator::OpenSqliteStoreReadOnly(flags.db);
  if (!store.ok()) return Fail("fsck", store.status());
  const auto violations = coordinator::CheckInvariants(**store, benchmarks::EntryValues);
  if (!violations.ok()) return Fail("fsck", violations.status());
  if (flags.json) {
    std::cout
        << nlohmann::ordered_json{{"db", flags.db}, {"ok", violations->empty()}, {"violations", *violations}}.dump()
        << "\n";
  } else if (violations->empty()) {
    std::cout << flags.db << ": sound\n";
  } else {
    for (const std::string& line : *violations) std::cout << TerminalSafe(line) << "\n";
  }
  return violations->empty() ? kExitOk : kExitCheckFailed;
}

struct CopyFlags {
  std::string db;
  std::string sweep;
  std::string out;
};

int RunBackup(const CopyFlags& flags) {
  if (const absl::Status status = coordinator::BackupDatabase(flags.db, flags.out); !status.ok()) {
    return Fail("backup", status);
  }
  std::cerr << "wrote " << TerminalSafe(flags.out) << "\n";
  return kExitOk;
}

absl::Status ExportSamples(const CopyFlags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(*store, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const std::string samples, SamplesJsonl(*store, sweep));
  if (flags.out != "-") return WriteFileAtomic(flags.out, samples);
  std::cout << samples << std::flush;
  return absl::OkStatus();
}

absl::Status PrintProfile(const CopyFlags& flags, bool json) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(flags.db));
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, coordinator::FindSweepByPrefix(*store, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const SweepTelemetry telemetry, ReadTelemetry(*store, sweep));
  if (json) {
    nlohmann::ordered_json object = {{"sweep", sweep.Hex()}};
    object.update(ToJson(telemetry));
    std::cout << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  std::cout << OperationTable(telemetry.total, std::nullopt) << TelemetrySummary(telemetry.total, std::nullopt);
  for (const JobReport& job : telemetry.jobs) {
    std::cout << TerminalSafe(fmt::format("{} {} (entry {}): {} tokens generated; prefill {:.2f} s, decode {:.2f} s; "
                                          "worker processes: {}",
                                          job.model, job.benchmark, job.entry, job.engine.generated_tokens,
                                          absl::ToDoubleSeconds(job.engine.prefill_time),
                                          absl::ToDoubleSeconds(job.engine.decode_time), job.processes))
              << "\n";
  }
  return absl::OkStatus();
}

void AddProfile(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<CopyFlags>();
  const auto json = std::make_shared<bool>(false);
  CLI::App* profile = app.add_subcommand("profile", "Where the time of a stored sweep's workers went, by operation");
  profile->add_option("--db", flags->db, "database file")->required();
  profile->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
  profile->add_flag("--json", *json, "one JSON object, each job by itself");
  profile->footer("Example:\n  iha-eval profile --db sweeps.db --sweep 3f2a");
  profile->callback([flags, json, &command] {
    const absl::Status status = PrintProfile(*flags, *json);
    command.exit_code = status.ok() ? kExitOk : Fail("profile", status);
  });
}

void AddBackup(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<CopyFlags>();
  CLI::App* backup = app.add_subcommand("backup", "Copy a database while it is in use");
  backup->add_option("--db", flags->db, "database file")->required();
  backup->add_option("--out", flags->out, "file to write; must not exist")->required();
  backup->footer("Example:\n  iha-eval backup --db sweeps.db --out sweeps.backup.db");
  backup->callback([flags, &command] { command.exit_code = RunBackup(*flags); });
}

void AddExport(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<CopyFlags>();
  CLI::App* group = app.add_subcommand("export", "Stored results for other tools");
  group->require_subcommand(0, 1);
  AddBaselineExport(*group, command);
  group->footer("Example:\n  iha-eval export samples --db sweeps.db --sweep 3f2a --out samples.jsonl");
  CLI::App* samples = group->add_subcommand("samples", "Every sample with its text and grades, as samples.jsonl");
  samples->add_option("--db", flags->db, "database file")->required();
  samples->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
  samples->add_option("--out", flags->out, "file to write; - = stdout")->required();
  samples->footer("Example:\n  iha-eval export samples --db sweeps.db --sweep 3f2a --out -");
  samples->callback([flags, &command] {
    const absl::Status status = ExportSamples(*flags);
    command.exit_code = status.ok() ? kExitOk : Fail("export samples", status);
  });
  AddExportLmEval(*group, command);
}

}  // namespace

absl::StatusOr<std::vector<SweepSummary>> ListFromFile(const std::string& db) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(db));
  std::vector<SweepSummary> summaries;
  IHA_RETURN_IF_ERROR(store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(summaries, coordinator::Summaries(txn));
    return absl::OkStatus();
  }));
  return summaries;
}

void AddStore(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<FsckFlags>();
  CLI::App* fsck = app.add_subcommand("fsck", "Check every invariant of a database; exit 5 if one does not hold");
  fsck->add_option("--db", flags->db, "database file")->required();
  fsck->add_flag("--json", flags->json, "one JSON object");
  fsck->footer("Example:\n  iha-eval fsck --db sweeps.db");
  fsck->callback([flags, &command] { command.exit_code = RunFsck(*flags); });
  AddProfile(app, command);
  AddBackup(app, command);
  AddExport(app, command);
}

}  // namespace iha::cli
