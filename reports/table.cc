#include "reports/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.h"
#include "reports/layout.h"
#include "reports/ranks.h"

namespace iha::reports {
namespace {

using scoring::Rational;

// Above this share of truncated or empty samples a reader must be told (protocols: 256-token caps score cut answers).
constexpr int64_t kWarnPercent = 5;

absl::StatusOr<size_t> BaselineRow(const SweepSpec& spec, const std::string& wanted) {
  const auto& models = spec.models;
  if (wanted.empty()) return 0;
  for (size_t m = 0; m < models.size(); m++) {
    if (models[m].name == wanted) return m;
  }
  std::string known;
  for (const ModelRef& model : models) known += (known.empty() ? "" : ", ") + model.name;
  return InvalidArgument("--baseline \"{}\": no such row; the sweep has {}", wanted, known);
}

void FillDeltas(Table& table, size_t baseline) {
  if (table.rows.size() < 2) return;
  table.baseline = table.rows[baseline].model;
  for (size_t m = 0; m < table.rows.size(); m++) {
    if (m == baseline) continue;
    for (size_t c = 0; c < table.columns.size(); c++) {
      const Cell& base = table.rows[baseline].cells[c].cell;
      TableCell& own = table.rows[m].cells[c];
      if (base.complete() && own.cell.complete()) own.delta = *own.cell.value - *base.value;
    }
  }
}

void FillRanks(Table& table) {
  ScoreMatrix values;
  for (const TableRow& row : table.rows) {
    auto& out = values.emplace_back();
    for (const TableCell& cell : row.cells) out.push_back(cell.cell.complete() ? cell.cell.value : std::nullopt);
  }
  const ScoreMatrix ranks = RanksByMetric(values);
  const auto averages = AverageRanks(values);
  for (size_t m = 0; m < table.rows.size(); m++) {
    if (table.rows.size() > 1) table.rows[m].average_rank = averages[m];
    for (size_t c = 0; c < table.columns.size(); c++) {
      TableCell& cell = table.rows[m].cells[c];
      cell.rank = ranks[m][c];
      if (!cell.rank.has_value()) continue;
      int64_t worse = 0;
      int64_t better = 0;
      for (const auto& row : ranks) {
        if (row[c].has_value() && *row[c] > *cell.rank) worse++;
        if (row[c].has_value() && *row[c] < *cell.rank) better++;
      }
      cell.best = better == 0 && worse > 0;
    }
  }
}

std::string ShareText(int64_t part, int64_t whole) {
  return fmt::format("{} of {} samples ({} %)", part, whole, Percent(Rational(part, whole), 1));
}

void AddNotes(Table& table) {
  for (size_t c = 0; c < table.columns.size(); c++) {
    const Column& column = table.columns[c];
    // Truncation and emptiness belong to an entry's samples, not to a metric: say them once for each entry.
    const bool first_of_entry = c == 0 || table.columns[c - 1].entry != column.entry;
    for (const TableRow& row : table.rows) {
      const Cell& cell = row.cells[c].cell;
      const std::string where = fmt::format("{} / {}", row.model, column.header);
      if (first_of_entry && cell.truncated * 100 > cell.samples * kWarnPercent) {
        table.notes.push_back(fmt::format("{}: {} ended at max_new_tokens={}; their answers may be cut", where,
                                          ShareText(cell.truncated, cell.samples),
                                          table.provenance.spec.entries[column.entry].sampling.max_new_tokens));
      }
      if (first_of_entry && cell.empty * 100 > cell.samples * kWarnPercent) {
        table.notes.push_back(fmt::format("{}: {} are empty", where, ShareText(cell.empty, cell.samples)));
      }
      for (const auto& [reason, count] : cell.unscored) {
        table.notes.push_back(fmt::format("{}: {} of {} items {}", where, count, cell.planned, NameOf(reason)));
      }
    }
  }
}

}  // namespace

std::string Percent(const Rational& value, int decimals) { return (value * Rational(100)).ToFixed(decimals); }

std::string SignedPercent(const Rational& value, int decimals) {
  std::string text = Percent(value, decimals);
  return text.front() == '-' ? text : "+" + text;
}

std::string Describe(const SweepEntry& entry) {
  std::string text = entry.benchmark.name;
  char separator = '?';
  for (const auto& [key, value] : entry.benchmark.options) {
    if (value.empty()) continue;  // an option that is off
    text += fmt::format("{}{}={}", separator, key, value);
    separator = '&';
  }
  const SamplingParams& s = entry.sampling;
  text += s.draws() ? fmt::format(" k={} T={} top_p={} top_k={} seed={} max_new_tokens={}", s.samples, s.temperature,
                                  s.top_p, s.top_k, s.seed, s.max_new_tokens)
                    : " scored by log-likelihood";
  if (entry.limit.has_value()) text += fmt::format(" limit={}", *entry.limit);
  return text;
}

absl::Status CheckTableOptions(const SweepSpec& spec, const TableOptions& options) {
  if (auto columns = ColumnsOf(spec, options.layout); !columns.ok()) return columns.status();
  return BaselineRow(spec, options.baseline).status();
}

absl::StatusOr<Table> BuildTable(const Snapshot& snapshot, const TableOptions& options) {
  auto columns = ColumnsOf(snapshot.spec, options.layout);
  if (!columns.ok()) return columns.status();
  auto baseline = BaselineRow(snapshot.spec, options.baseline);
  if (!baseline.ok()) return baseline.status();
  const size_t entries = snapshot.spec.entries.size();
  if (snapshot.jobs.size() != snapshot.spec.models.size() * entries) {
    return Internal("snapshot of sweep {}: {} jobs, expected {} models x {} entries", snapshot.sweep.Hex(),
                    snapshot.jobs.size(), snapshot.spec.models.size(), entries);
  }

  Table table{.layout = options.layout,
              .baseline = "",
              .columns = *std::move(columns),
              .rows = {},
              .notes = {},
              .provenance = snapshot};
  for (JobRows& job : table.provenance.jobs) job.items.clear();
  for (size_t m = 0; m < snapshot.spec.models.size(); m++) {
    TableRow& row = table.rows.emplace_back();
    row.model = snapshot.spec.models[m].name;
    std::vector<std::vector<Cell>> cells;
    for (size_t e = 0; e < entries; e++) {
      const JobRows& job = snapshot.jobs[m * entries + e];
      cells.push_back(CellsOf(job));
      row.weights = job.weights;
      row.tokenizer = job.tokenizer;
    }
    for (const Column& column : table.columns) {
      const auto& metrics = snapshot.jobs[m * entries + column.entry].spec.entry.metrics;
      const auto at = std::find(metrics.begin(), metrics.end(), column.metric);
      row.cells.emplace_back().cell = cells[column.entry][static_cast<size_t>(at - metrics.begin())];
    }
  }
  FillDeltas(table, *baseline);
  FillRanks(table);
  AddNotes(table);
  return table;
}

}  // namespace iha::reports
