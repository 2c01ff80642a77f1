// Commands against a running coordinator: submit, watch, status, cancel, list, table (the last two also on a file).
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/coordinator_flags.h"
#include "cli/input.h"
#include "cli/run/progress.h"
#include "cli/store_commands.h"
#include "cli/sweep_file.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "proto/link/address.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  CoordinatorFlags coordinator;
  std::string db;
  std::string sweep;  // id, or a file for submit
  reports::TableOptions table;
  std::string format = "md";
  std::string grader;
  std::vector<std::string> imports;
  int64_t shown_samples = kShownSamples;
  std::string target = "population";
  std::string data_root;
  bool json = false;
};

// An id, or a prefix that names one sweep of the coordinator.
absl::StatusOr<SweepId> FindSweep(ClientApi& api, const std::string& text) {
  if (const auto digest = ParseDigest(text); digest.ok()) return SweepId{*digest};
  IHA_ASSIGN_OR_RETURN(const std::vector<SweepSummary> sweeps, api.List());
  std::vector<SweepId> matches;
  for (const SweepSummary& sweep : sweeps) {
    if (!text.empty() && sweep.sweep.Hex().starts_with(text)) matches.push_back(sweep.sweep);
  }
  if (matches.size() == 1) return matches.front();
  return InvalidArgument("sweep \"{}\": {} sweeps start like this; expected one (iha-eval list shows them)", text,
                         matches.size());
}

Json ProgressJson(const SweepProgress& progress) {
  Json json = {{"sweep", progress.sweep.Hex()},
               {"state", progress.state},
               {"planned", PlannedItems(progress)},
               {"finished", FinishedItems(progress)},
               {"live_workers", progress.live_workers},
               {"leased_shards", progress.leased_shards},
               {"tokens_per_second", progress.tokens_per_second}};
  json["jobs"] = Json::array();
  for (const JobProgress& job : progress.jobs) {
    json["jobs"].push_back({{"job", job.job.Hex()},
                            {"model", job.model},
                            {"entry", job.entry},
                            {"state", job.state},
                            {"planned", job.planned},
                            {"scored", job.scored},
                            {"unscored", job.unscored}});
  }
  json["notes"] = progress.notes;
  return json;
}

std::string JsonLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

void PrintProgress(const SweepProgress& progress, bool json) {
  if (json) {
    std::cout << JsonLine(ProgressJson(progress));
    return;
  }
  std::cout << "sweep " << progress.sweep.Hex() << "  " << progress.state << "  " << FinishedItems(progress) << "/"
            << Counted(PlannedItems(progress), "item") << "  " << Counted(progress.live_workers, "worker") << "\n";
  for (const JobProgress& job : progress.jobs) {
    std::cout << TerminalSafe(fmt::format(
                     "  {:<18} {}/{}{}  {} · {}", job.state, job.scored + job.unscored, job.planned,
                     job.unscored > 0 ? fmt::format(" ({} unscored)", job.unscored) : "", job.model, job.entry))
              << "\n";
  }
  for (const std::string& note : progress.notes) std::cout << "  note: " << TerminalSafe(note) << "\n";
}

absl::Status Submit(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadInput(flags.sweep, kMaxSweepBytes));
  IHA_ASSIGN_OR_RETURN(const SweepSpec spec, ParseSweep(text, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  const absl::StatusOr<SweepId> submitted = connection->api->Submit(spec);
  if (!submitted.ok()) {
    // These are about files, and this machine may have what that one lacks.
    const absl::StatusCode code = submitted.status().code();
    const bool files = code == absl::StatusCode::kNotFound || code == absl::StatusCode::kDataLoss ||
                       code == absl::StatusCode::kPermissionDenied;
    return files ? Annotate(submitted.status(), "on the coordinator") : submitted.status();
  }
  const SweepId id = *submitted;
  std::cout << (flags.json ? JsonLine({{"sweep", id.Hex()}}) : id.Hex() + "\n");
  return absl::OkStatus();
}

absl::Status Status(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  IHA_ASSIGN_OR_RETURN(const SweepId id, FindSweep(*connection->api, flags.sweep));
  IHA_ASSIGN_OR_RETURN(const SweepProgress progress, connection->api->Status(id));
  PrintProgress(progress, flags.json);
  return absl::OkStatus();
}

absl::Status Watch(const Flags& flags, bool live) {
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  IHA_ASSIGN_OR_RETURN(const SweepId id, FindSweep(*connection->api, flags.sweep));
  ProgressMeter meter;
  ProgressPace pace;
  const absl::Duration start = connection->clock.Elapsed();
  std::string last;
  for (;;) {
    IHA_ASSIGN_OR_RETURN(const SweepProgress progress, connection->api->Status(id));
    const absl::Duration elapsed = connection->clock.Elapsed() - start;
    const bool due = pace.Due(elapsed);
    if (live) std::cerr << "\r\033[K" << meter.Line(progress, elapsed, 100) << std::flush;
    if (!live && due && !flags.json && progress.state == "running") {
      std::cerr << meter.Line(progress, elapsed, 160) << std::endl;
    }
    if (flags.json) {
      // One object a change, for scripts that follow along.
      if (const std::string line = JsonLine(ProgressJson(progress)); line != last)
        std::cout << (last = line) << std::flush;
    }
    if (progress.state != "running") {
      if (live) std::cerr << "\n";
      if (!flags.json) PrintProgress(progress, false);
      return absl::OkStatus();
    }
    connection->clock.SleepUntil(connection->clock.Elapsed() + absl::Seconds(1));
  }
}

absl::Status Cancel(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  IHA_ASSIGN_OR_RETURN(const SweepId id, FindSweep(*connection->api, flags.sweep));
  IHA_RETURN_IF_ERROR(connection->api->Cancel(id));
  // Finished work stays finished: only the state tells whether there was something to cancel.
  IHA_ASSIGN_OR_RETURN(const SweepProgress progress, connection->api->Status(id));
  const bool cancelled = progress.state == "cancelled";
  if (flags.json) {
    std::cout << JsonLine({{"sweep", id.Hex()}, {"cancelled", cancelled}});
  } else {
    std::cout << (cancelled ? fmt::format("cancelled {}\n", id.Hex())
                            : fmt::format("{}: already {}; nothing to cancel\n", id.Hex(), progress.state));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SweepSummary>> Summaries(const Flags& flags) {
  if (!flags.db.empty()) return ListFromFile(flags.db);
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  return connection->api->List();
}

absl::Status List(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const std::vector<SweepSummary> sweeps, Summaries(flags));
  for (const SweepSummary& sweep : sweeps) {
    const std::string when = absl::FormatTime(absl::RFC3339_sec, sweep.submitted, absl::UTCTimeZone());
    if (flags.json) {
      std::cout << JsonLine({{"sweep", sweep.sweep.Hex()},
                             {"state", sweep.state},
                             {"planned", sweep.planned},
                             {"finished", sweep.finished},
                             {"submitted", when},
                             {"run_tag", sweep.run_tag}});
    } else {
      std::cout << TerminalSafe(fmt::format("{}  {:<9}  {}/{}  {}{}{}", sweep.sweep.Hex(), sweep.state, sweep.finished,
                                            Counted(sweep.planned, "item"), when, sweep.run_tag.empty() ? "" : "  ",
                                            sweep.run_tag))
                << "\n";
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TableFromCoordinator(const Flags& flags, const std::string& format) {
  IHA_ASSIGN_OR_RETURN(const auto connection, Connect(flags.coordinator));
  IHA_ASSIGN_OR_RETURN(const SweepId id, FindSweep(*connection->api, flags.sweep));
  return connection->api->Table(id, flags.table.layout, flags.table.baseline, format);
}

absl::Status Table(const Flags& flags) {
  const std::string format = flags.json ? "json" : flags.format;
  const bool remote = flags.db.empty() && flags.imports.empty();
  IHA_ASSIGN_OR_RETURN(const std::string text, remote ? TableFromCoordinator(flags, format)
                                                      : TableFromFiles({.db = flags.db,
                                                                        .sweep = flags.sweep,
                                                                        .imports = flags.imports,
                                                                        .options = flags.table,
                                                                        .about_the_list = flags.target == "benchmark",
                                                                        .data_root = flags.data_root,
                                                                        .format = format,
                                                                        .grader = flags.grader,
                                                                        .shown_samples = flags.shown_samples}));
  std::cout << text;
  return absl::OkStatus();
}

// A table is of a sweep, of imported rows, or of both: then from files.
absl::Status CheckTableSource(const CLI::App& sub, const Flags& flags) {
  if (sub.get_name() != "table") return absl::OkStatus();
  const bool stored = !flags.db.empty() || !flags.coordinator.endpoint.address.empty();
  if (stored && flags.sweep.empty()) return InvalidArgument("--sweep is missing; iha-eval list shows the ids");
  if (!stored && !flags.sweep.empty()) return InvalidArgument("--sweep: give --db FILE or --coordinator HOST:PORT");
  if (flags.coordinator.endpoint.address.empty()) return absl::OkStatus();
  for (const char* flag : {"--import", "--delta-from", "--show-samples"}) {
    if (sub.count(flag) > 0) return InvalidArgument("{}: needs --db FILE, not --coordinator", flag);
  }
  return absl::OkStatus();
}

using Action = std::function<absl::Status(const Flags& flags)>;

CLI::App* Add(CLI::App& app, Command& command, const std::string& name, const std::string& help,
              const std::shared_ptr<Flags>& flags, Action action) {
  CLI::App* sub = app.add_subcommand(name, help);
  AddCoordinatorFlags(*sub, flags->coordinator);
  sub->add_flag("--json", flags->json, "JSON on stdout");
  sub->callback([sub, flags, &command, name, action = std::move(action)] {
    if (flags->coordinator.endpoint.address.empty() && flags->db.empty() && flags->imports.empty()) {
      const bool reads_files = sub->get_option_no_throw("--db") != nullptr;
      command.exit_code =
          FailUsage(name, InvalidArgument("give {}--coordinator HOST:PORT", reads_files ? "--db FILE or " : ""));
      return;
    }
    if (!flags->coordinator.endpoint.address.empty() && !flags->db.empty()) {
      command.exit_code = FailUsage(name, InvalidArgument("give --db FILE or --coordinator HOST:PORT, not both"));
      return;
    }
    if (const absl::Status status = CheckTableSource(*sub, *flags); !status.ok()) {
      command.exit_code = FailUsage(name, status);
      return;
    }
    if (!flags->coordinator.endpoint.address.empty()) {
      if (const absl::Status address = link::CheckAddress("--coordinator", flags->coordinator.endpoint.address);
          !address.ok()) {
        command.exit_code = FailUsage(name, address);
        return;
      }
    }
    const absl::Status status = action(*flags);
    command.exit_code = status.ok() ? kExitOk : Fail(name, status);
  });
  return sub;
}

}  // namespace

void AddClient(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* submit =
      Add(app, command, "submit", "Hand a sweep to a coordinator; prints its id (twice = one sweep)", flags, Submit);
  submit->add_option("file", flags->sweep, "sweep.json; - = stdin")->required();
  submit->footer("Example:\n  iha-eval submit --coordinator 127.0.0.1:7000 sweep.json");

  CLI::App* watch = Add(app, command, "watch", "Follow a sweep until it is done", flags,
                        [&command](const Flags& f) { return Watch(f, command.progress && !f.json); });
  CLI::App* status = Add(app, command, "status", "A sweep's jobs, items and notes", flags, Status);
  CLI::App* cancel = Add(app, command, "cancel", "Stop a sweep; what is scored stays", flags, Cancel);
  for (CLI::App* sub : {watch, status, cancel}) {
    sub->add_option("sweep", flags->sweep, "sweep id, or a prefix that is unique")->required();
    sub->footer(fmt::format("Example:\n  iha-eval {} --coordinator 127.0.0.1:7000 3f2a", sub->get_name()));
  }

  CLI::App* list = Add(app, command, "list", "All sweeps of a coordinator or database", flags, List);
  list->add_option("--db", flags->db, "database file, instead of --coordinator");
  list->footer("Example:\n  iha-eval list --db out/iha-eval.db");

  CLI::App* table = Add(app, command, "table", "A stored sweep as a table", flags, Table);
  CLI::Option* file = table->add_option("--db", flags->db, "database file, instead of --coordinator");
  table->add_option("--grader", flags->grader, "by the rows that regrade stored under this version")->needs(file);
  table->add_option("--sweep", flags->sweep, "sweep id, or a prefix that is unique");
  table->add_option("--import", flags->imports,
                    "add rows that were not scored here, repeatable: a CSV of percentages, results_*.json or "
                    "samples_*.jsonl of lm-evaluation-harness; without --db a table of these alone");
  table->add_option("--layout", flags->table.layout, "generic, table1, table2")
      ->check(CLI::IsMember({"generic", "table1", "table2"}));
  table->add_option("--baseline", flags->table.baseline, "row that deltas are against; default the first");
  table
      ->add_option_function<std::string>(
          "--delta-from", [flags](const std::string& from) { flags->table.printed_deltas = from == "printed"; },
          "exact (default), or printed: deltas of the rounded values, as in published tables")
      ->check(CLI::IsMember({"exact", "printed"}));
  table
      ->add_option("--target", flags->target,
                   "what intervals are about: population (default), a wider world that the items are drawn from, or "
                   "benchmark, its own list of items")
      ->check(CLI::IsMember({"population", "benchmark"}))
      ->needs(file);
  flags->data_root = command.data_root;
  table->add_option("--data-root", flags->data_root, "benchmark data: --target benchmark counts the items of a limit")
      ->needs(file);
  table->add_option("--format", flags->format, "md, csv, json, latex, html")
      ->check(CLI::IsMember({"md", "csv", "json", "latex", "html"}))
      ->excludes(table->get_option("--json"));
  table->add_option("--show-samples", flags->shown_samples, "html: items of each cell with their text; default 12")
      ->check(WholeNumber(0, 100000));
  table->footer("Example:\n  iha-eval table --db out/iha-eval.db --sweep 3f2a --format html > table.html");
}

}  // namespace iha::cli
