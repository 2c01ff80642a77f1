// table from files: a stored sweep, imported rows, or both.
#include <filesystem>

#include "benchmarks/benchmark.h"
#include "cli/run/shown_samples.h"
#include "cli/store_commands.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "common/version.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/store/sqlite_store.h"
#include "reports/imported.h"
#include "reports/lm_eval.h"
#include "reports/render.h"
#include "reports/render_html.h"

namespace iha::cli {
namespace {

constexpr int64_t kMaxImportBytes = int64_t{1} << 30;

// "NAME=FILE" names the row; a file that is there with the whole text as its name is meant itself.
std::pair<std::string, std::string> NameAndPath(const std::string& flag) {
  const size_t equals = flag.find('=');
  std::error_code ignored;
  if (equals == std::string::npos || std::filesystem::exists(flag, ignored)) return {"", flag};
  return {flag.substr(0, equals), flag.substr(equals + 1)};
}

// TASK of "samples_TASK_2026-02-24T10-11-12.123456.jsonl", or of "samples_TASK_<16 digits>.jsonl" as export writes it.
std::string TaskOf(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  if (name.starts_with("samples_")) name = name.substr(8);
  const size_t last = name.rfind('_');
  if (last == std::string::npos) return name;
  const std::string end = name.substr(last + 1);
  const bool date = end.size() > 10 && end[4] == '-' && end[7] == '-';
  const bool sweep = end.size() == 16 && end.find_first_not_of("0123456789abcdef") == std::string::npos;
  return date || sweep ? name.substr(0, last) : name;
}

absl::StatusOr<std::vector<reports::ImportedRow>> ImportFile(const std::string& flag) {
  const auto [name, path] = NameAndPath(flag);
  const std::filesystem::path file(path);
  const std::string extension = file.extension().string();
  if (extension != ".csv" && extension != ".json" && extension != ".jsonl") {
    return InvalidArgument("--import {}: expected a .csv, .json or .jsonl file", path);
  }
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, kMaxImportBytes));
  if (extension == ".csv") {
    if (!name.empty()) return InvalidArgument("--import {}: the rows of a CSV bring their names", flag);
    return reports::ImportCsv(text, path);
  }
  const std::string folder = std::filesystem::absolute(file).parent_path().filename().string();
  absl::StatusOr<reports::ImportedRow> row = extension == ".json"
                                                 ? reports::ImportLmEvalResults(text, path)
                                                 : reports::ImportLmEvalSamples(text, TaskOf(file), folder, path);
  if (!row.ok()) return row.status();
  if (!name.empty()) row->model = name;
  if (row->model.empty()) return InvalidArgument("--import {}: names no model; say --import NAME=FILE", path);
  return std::vector<reports::ImportedRow>{*std::move(row)};
}

absl::StatusOr<std::vector<reports::ImportedRow>> ImportFiles(const std::vector<std::string>& flags) {
  std::vector<reports::ImportedRow> rows;
  for (const std::string& flag : flags) {
    IHA_ASSIGN_OR_RETURN(std::vector<reports::ImportedRow> read, ImportFile(flag));
    std::move(read.begin(), read.end(), std::back_inserter(rows));
  }
  return reports::MergedRows(std::move(rows));
}

// How many items each entry's benchmark has. One that was run with a limit is opened to see.
absl::StatusOr<std::vector<int64_t>> ListItems(const reports::Snapshot& snapshot, const std::string& data_root) {
  std::vector<int64_t> items;
  for (size_t e = 0; e < snapshot.spec.entries.size(); e++) {
    const SweepEntry& entry = snapshot.spec.entries[e];
    const JobSpec& job = snapshot.jobs[e].spec;
    items.push_back(job.items);
    if (!entry.limit.has_value()) continue;
    const auto benchmark = benchmarks::OpenBenchmark(entry.benchmark, data_root);
    if (!benchmark.ok()) {
      return Annotate(benchmark.status(), "--target benchmark: how many items the whole list has");
    }
    if ((*benchmark)->data_digest() != job.data_digest) {
      return FailedPrecondition(
          "--target benchmark: {}: the data now have digest {}, those of the sweep had {}; give their --data-root",
          entry.benchmark.name, (*benchmark)->data_digest().Hex().substr(0, 16), job.data_digest.Hex().substr(0, 16));
    }
    items.back() = (*benchmark)->size();
  }
  return items;
}

}  // namespace

absl::StatusOr<std::string> TableFromFiles(const TableRequest& request) {
  IHA_ASSIGN_OR_RETURN(const std::vector<reports::ImportedRow> imported, ImportFiles(request.imports));
  if (request.db.empty()) {
    IHA_ASSIGN_OR_RETURN(const reports::Table table, reports::BuildImportedTable(imported, request.options));
    return reports::Render(table, request.format);
  }
  IHA_ASSIGN_OR_RETURN(const auto store, coordinator::OpenSqliteStoreReadOnly(request.db));
  IHA_ASSIGN_OR_RETURN(const SweepId id, coordinator::FindSweepByPrefix(*store, request.sweep));
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot,
                       coordinator::ReadSnapshot(*store, id, kVersion, request.grader));
  reports::TableOptions options = request.options;
  if (request.about_the_list) {
    IHA_ASSIGN_OR_RETURN(options.list_items, ListItems(snapshot, request.data_root));
  }
  IHA_ASSIGN_OR_RETURN(const reports::Table table, reports::BuildTable(snapshot, options, imported));
  if (request.format != "html" || request.shown_samples == 0) return reports::Render(table, request.format);
  IHA_ASSIGN_OR_RETURN(const auto samples, ShownSamples(*store, id, request.shown_samples));
  return reports::RenderHtml(table, samples);
}

}  // namespace iha::cli
