// Commands on a database file: table, fsck, list (--db).
#include "cli/store_commands.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/benchmark.h"
#include "cli/command.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "common/version.h"
#include "coordinator/store/invariants.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/render.h"

namespace iha::cli {
namespace {

struct FsckFlags {
  std::string db;
  bool json = false;
};

int RunFsck(const FsckFlags& flags) {
  const auto store = coordinator::OpenSqliteStoreReadOnly(flags.db);
  if (!store.ok()) return Fail("fsck", store.status());
  const auto violations = coordinator::CheckInvariants(**store, benchmarks::ItemValues);
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

}  // namespace

absl::StatusOr<std::string> TableFromFile(const std::string& db, const std::string& sweep,
                                          const reports::TableOptions& options, const std::string& format) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(db));
  IHA_ASSIGN_OR_RETURN(const SweepId id, coordinator::FindSweepByPrefix(*store, sweep));
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, coordinator::ReadSnapshot(*store, id, kVersion));
  IHA_ASSIGN_OR_RETURN(const reports::Table table, reports::BuildTable(snapshot, options));
  return reports::Render(table, format);
}

absl::StatusOr<std::vector<SweepSummary>> ListFromFile(const std::string& db) {
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(db));
  std::vector<SweepSummary> summaries;
  IHA_RETURN_IF_ERROR(store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const auto sweeps, txn.Sweeps());
    for (const coordinator::SweepRecord& sweep : sweeps) {
      SweepSummary& summary = summaries.emplace_back();
      summary.sweep = sweep.id;
      summary.run_tag = sweep.spec.run_tag;
      summary.submitted = sweep.submitted;
      bool cancelled = false;
      IHA_ASSIGN_OR_RETURN(const auto jobs, txn.Jobs(sweep.id));
      for (const coordinator::JobRecord& job : jobs) {
        IHA_ASSIGN_OR_RETURN(const coordinator::JobCounts counts, txn.Counts(job.id));
        summary.planned += job.spec.items;
        summary.finished += counts.scored + counts.unscored;
        cancelled = cancelled || job.cancel_requested;
      }
      summary.state = cancelled ? "cancelled" : summary.finished == summary.planned ? "done" : "running";
    }
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
}

}  // namespace iha::cli
