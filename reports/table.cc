#include "reports/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/counted.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "reports/entry_names.h"
#include "reports/layout.h"
#include "reports/ranks.h"
#include "reports/ruler_notes.h"

namespace iha::reports {
namespace {

using scoring::Rational;

// Above this share of truncated or empty samples a reader must be told (protocols: 256-token caps score cut answers).
constexpr int64_t kWarnPercent = 5;
constexpr int64_t kMostNamed = 8;  // suspects, or cells, in a note

absl::StatusOr<size_t> BaselineRow(const std::vector<std::string>& rows, const std::string& wanted) {
  if (wanted.empty()) return 0;
  const auto at = std::find(rows.begin(), rows.end(), wanted);
  if (at != rows.end()) return static_cast<size_t>(at - rows.begin());
  return InvalidArgument("--baseline \"{}\": no such row; the table has {}", wanted,
                         TerminalSafe(fmt::format("{}", fmt::join(rows, ", "))));
}

std::vector<std::string> NamesOf(const SweepSpec& spec) {
  std::vector<std::string> names;
  for (const ModelRef& model : spec.models) names.push_back(model.name);
  return names;
}

// The value that a reader of the printed table would compute with.
Rational AsPrinted(const Rational& value, int decimals) {
  return *Rational::ParseDecimal(Percent(value, decimals)) / Rational(100);
}

void FillDeltas(Table& table, size_t baseline, bool printed) {
  if (table.rows.size() < 2) return;
  table.baseline = table.rows[baseline].model;
  for (size_t m = 0; m < table.rows.size(); m++) {
    if (m == baseline) continue;
    for (size_t c = 0; c < table.columns.size(); c++) {
      const Cell& base = table.rows[baseline].cells[c].cell;
      TableCell& own = table.rows[m].cells[c];
      if (!base.complete() || !own.cell.complete()) continue;
      const int decimals = table.columns[c].decimals;
      own.delta = printed ? AsPrinted(*own.cell.value, decimals) - AsPrinted(*base.value, decimals)
                          : *own.cell.value - *base.value;
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
  return fmt::format("{} of {} ({} %)", part, Counted(whole, "sample"), Percent(Rational(part, whole), 1));
}

void AddSuspects(const JobRows& job, Table& table) {
  for (const ItemRow& item : job.items) {
    for (const int32_t sample : item.suspects) {
      table.suspects.push_back({.model = job.spec.model.name,
                                .benchmark = job.spec.entry.benchmark.name,
                                .entry = static_cast<size_t>(job.spec.entry_index),
                                .index = item.index,
                                .item_id = item.item_id,
                                .sample = sample});
    }
  }
}

// "3 samples are suspects, ...: HumanEval/2 (sample 0), ...", or "".
std::string SuspectsText(const Table& table, const std::string& model, size_t entry) {
  std::string names;
  int64_t count = 0;
  for (const Suspect& suspect : table.suspects) {
    if (suspect.model != model || suspect.entry != entry || ++count > kMostNamed) continue;
    names += fmt::format("{}{} (sample {})", names.empty() ? "" : ", ", suspect.item_id, suspect.sample);
  }
  if (count == 0) return "";
  if (count > kMostNamed) names += fmt::format(" and {} more (table.json)", count - kMostNamed);
  return fmt::format("{}, which only the official rule passes: {}",
                     count == 1 ? "1 sample is a suspect" : fmt::format("{} samples are suspects", count), names);
}

bool NothingFinished(const Cell& cell) {
  const auto pending = cell.unscored.find(Unscored::kPending);
  return cell.planned > 0 && pending != cell.unscored.end() && pending->second == cell.planned;
}

// Of all cells that wait for their first item one note, or none: a sweep that has just begun has nothing else.
void AddNothingFinished(Table& table) {
  std::vector<std::string> waiting;
  int64_t own = 0;
  for (const TableRow& row : table.rows) {
    if (!row.imported.empty()) continue;
    for (size_t c = 0; c < table.columns.size(); c++) {
      own++;
      if (NothingFinished(row.cells[c].cell))
        waiting.push_back(fmt::format("{} / {}", row.model, table.columns[c].header));
    }
  }
  if (waiting.empty()) return;
  const auto count = static_cast<int64_t>(waiting.size());
  if (count == own) {
    table.notes.push_back("no item of this sweep has finished yet");
    return;
  }
  std::string more;
  if (count > kMostNamed) {
    waiting.resize(kMostNamed);
    more = fmt::format(" and {} more", count - kMostNamed);
  }
  table.notes.push_back(fmt::format("no item has finished yet in {} of {}: {}{}", count, Counted(own, "cell"),
                                    fmt::join(waiting, ", "), more));
}

void AddNotes(Table& table) {
  AddNothingFinished(table);
  for (size_t c = 0; c < table.columns.size(); c++) {
    const Column& column = table.columns[c];
    // Truncation and emptiness belong to an entry's samples, not to a metric: say them once for each entry.
    const bool first_of_entry = c == 0 || table.columns[c - 1].entry != column.entry;
    for (const TableRow& row : table.rows) {
      if (!row.imported.empty()) continue;
      const Cell& cell = row.cells[c].cell;
      const std::string where = fmt::format("{} / {}", row.model, column.header);
      const bool ruler = column.metric == kRulerMetric;  // RulerNotes tells it once
      if (first_of_entry && !ruler && cell.truncated * 100 > cell.samples * kWarnPercent) {
        table.notes.push_back(fmt::format("{}: {} ended at max_new_tokens={}; their answers may be cut", where,
                                          ShareText(cell.truncated, cell.samples),
                                          table.provenance.spec.entries[column.entry].sampling.max_new_tokens));
      }
      if (first_of_entry && cell.empty * 100 > cell.samples * kWarnPercent) {
        table.notes.push_back(fmt::format("{}: {} are empty", where, ShareText(cell.empty, cell.samples)));
      }
      const std::string suspects = first_of_entry ? SuspectsText(table, row.model, column.entry) : "";
      if (!suspects.empty()) table.notes.push_back(fmt::format("{}: {}", where, suspects));
      if (NothingFinished(cell)) continue;  // told above
      for (const auto& [reason, count] : cell.unscored) {
        table.notes.push_back(
            fmt::format("{}: {} of {} {}", where, count, Counted(cell.planned, "item"), NameOf(reason)));
      }
    }
  }
}

// What the intervals are about, and which columns have none.
std::vector<std::string> TargetNotes(const Table& table) {
  std::vector<std::string> notes = {
      "intervals: of the mean over the benchmark's own list of items (target benchmark), not over a wider world of "
      "them"};
  std::vector<std::pair<std::string, std::vector<std::string>>> without;  // reason, columns
  bool limited = false;
  for (const Column& column : table.columns) {
    const SweepEntry& entry = table.provenance.spec.entries[column.entry];
    limited = limited || entry.limit.has_value();
    const std::string why = NoListInterval(entry, column.metric);
    if (why.empty()) continue;
    const auto known = std::find_if(without.begin(), without.end(), [&](const auto& one) { return one.first == why; });
    (known == without.end() ? without.emplace_back(why, std::vector<std::string>()) : *known)
        .second.push_back(column.header);
  }
  for (const auto& [why, columns] : without) {
    notes.push_back(fmt::format("no interval of {}: {}", fmt::join(columns, ", "), why));
  }
  if (limited) notes.push_back("items that a limit kept out are taken to be like those that were run");
  return notes;
}

// How many of the settings that the source tells are those of the entry.
int Likeness(const SweepEntry& entry, const ImportedValue& value) {
  if (!value.entry.empty()) return value.entry == Describe(entry) ? 2 : 0;
  const auto shots = entry.benchmark.options.find("fewshot");
  const std::string own = shots == entry.benchmark.options.end() ? "0" : shots->second;
  return value.shots.has_value() && own == fmt::format("{}", *value.shots) ? 1 : 0;
}

// Where `value` goes: the column of its header, else of its benchmark's metric that whose settings are most like what
// its source tells, the first of equals; nullopt if there is none.
std::optional<size_t> ColumnFor(const Table& table, const ImportedValue& value) {
  for (size_t c = 0; c < table.columns.size(); c++) {
    if (table.columns[c].header == value.column) return c;
  }
  if (value.metric.empty()) return std::nullopt;
  std::optional<size_t> found;
  int most = -1;
  for (size_t c = 0; c < table.columns.size(); c++) {
    const Column& column = table.columns[c];
    if (column.entry == kNoEntry || column.metric != value.metric) continue;
    const SweepEntry& entry = table.provenance.spec.entries[column.entry];
    if (entry.benchmark.name != value.benchmark || Likeness(entry, value) <= most) continue;
    found = c;
    most = Likeness(entry, value);
  }
  return found;
}

absl::Status AppendImported(Table& table, const std::vector<ImportedRow>& imported) {
  for (const ImportedRow& from : imported) {
    const bool taken =
        std::any_of(table.rows.begin(), table.rows.end(), [&](const TableRow& row) { return row.model == from.model; });
    if (taken) {
      return InvalidArgument("imported row \"{}\": the table has a row of that name; name it anew (--import NAME=FILE)",
                             TerminalSafe(from.model, 80));
    }
    TableRow row;
    row.model = from.model;
    row.imported = from.source;
    row.cells.resize(table.columns.size());
    for (size_t c = 0; c < row.cells.size(); c++) row.cells[c].cell.metric = table.columns[c].metric;
    std::vector<std::string> unused;
    std::set<size_t> taken_columns;
    for (const ImportedValue& value : from.values) {
      const auto c = ColumnFor(table, value);
      if (c.has_value() && taken_columns.insert(*c).second) {
        row.cells[*c].cell.value = value.value;
        if (!table.about_the_list) row.cells[*c].cell.interval = value.interval;
      } else {
        unused.push_back(value.column);
      }
    }
    if (!unused.empty()) {
      table.notes.push_back(
          fmt::format("{}: imported values without a column here: {}", from.model, fmt::join(unused, ", ")));
    }
    for (const std::string& note : from.notes) table.notes.push_back(fmt::format("{}: {}", from.model, note));
    table.rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

std::vector<std::string> OrderNotes(const SweepSpec& spec) {
  if (!spec.item_order.has_value()) return {};
  std::vector<std::string> notes = {
      fmt::format("sequential: items run in the random order of seed {}; what is unfinished or was stopped early has "
                  "no value here: "
                  "iha-eval gate --sequential",
                  *spec.item_order)};
  const std::vector<std::string> names = EntryNames(Named(spec.entries));
  for (size_t e = 0; e < spec.entries.size(); e++) {
    if (!spec.entries[e].stop_settled_votes) continue;
    notes.push_back(
        fmt::format("{}: an item's samples end once its votes are settled, after {} at most; no value here, whether "
                    "items are missing or not",
                    names[e], spec.entries[e].sampling.samples));
  }
  return notes;
}

absl::Status Complete(Table& table, const TableOptions& options) {
  std::vector<std::string> names;
  for (const TableRow& row : table.rows) names.push_back(row.model);
  IHA_ASSIGN_OR_RETURN(const size_t baseline, BaselineRow(names, options.baseline));
  FillDeltas(table, baseline, options.printed_deltas);
  FillRanks(table);
  return absl::OkStatus();
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
  if (entry.stop_settled_votes) text += " stop_settled_votes";
  return text;
}

absl::Status CheckTableOptions(const SweepSpec& spec, const TableOptions& options) {
  if (auto columns = ColumnsOf(spec, options.layout); !columns.ok()) return columns.status();
  return BaselineRow(NamesOf(spec), options.baseline).status();
}

absl::StatusOr<Table> BuildTable(const Snapshot& snapshot, const TableOptions& options,
                                 const std::vector<ImportedRow>& imported) {
  IHA_ASSIGN_OR_RETURN(std::vector<Column> columns, ColumnsOf(snapshot.spec, options.layout));
  const size_t entries = snapshot.spec.entries.size();
  if (snapshot.jobs.size() != snapshot.spec.models.size() * entries) {
    return Internal("snapshot of sweep {}: {} jobs, expected {} models x {} entries", snapshot.sweep.Hex(),
                    snapshot.jobs.size(), snapshot.spec.models.size(), entries);
  }

  Table table{.layout = options.layout,
              .baseline = "",
              .columns = std::move(columns),
              .rows = {},
              .suspects = {},
              .notes = LeftOut(snapshot.spec, options.layout),
              .ruler = {},
              .provenance = snapshot};
  for (std::string& note : AlsoFitting(snapshot.spec, options.layout)) table.notes.push_back(std::move(note));
  for (JobRows& job : table.provenance.jobs) job.items.clear();
  table.about_the_list = options.list_items.has_value();
  std::vector<std::vector<Cell>> first_metrics;  // of each entry
  for (size_t m = 0; m < snapshot.spec.models.size(); m++) {
    TableRow& row = table.rows.emplace_back();
    row.model = snapshot.spec.models[m].name;
    std::vector<std::vector<Cell>> cells;
    std::vector<Cell>& firsts = first_metrics.emplace_back();
    for (size_t e = 0; e < entries; e++) {
      const JobRows& job = snapshot.jobs[m * entries + e];
      cells.push_back(
          CellsOf(job, options.list_items.has_value() ? std::optional((*options.list_items)[e]) : std::nullopt));
      firsts.push_back(cells.back().front());
      AddSuspects(job, table);
      row.weights = job.weights;
      row.tokenizer = job.tokenizer;
    }
    for (const Column& column : table.columns) {
      const auto& metrics = snapshot.jobs[m * entries + column.entry].spec.entry.metrics;
      const auto at = std::find(metrics.begin(), metrics.end(), column.metric);
      row.cells.emplace_back().cell = cells[column.entry][static_cast<size_t>(at - metrics.begin())];
    }
  }
  table.ruler = RulerSummaries(snapshot.spec.entries, first_metrics);
  IHA_RETURN_IF_ERROR(AppendImported(table, imported));
  IHA_RETURN_IF_ERROR(Complete(table, options));
  if (options.rank_spread) table.rank_spread = SpreadOfRanks(snapshot, table);
  if (table.rank_spread.has_value()) table.notes.push_back(RankSpreadNote(table, *table.rank_spread));
  if (options.list_items.has_value()) {
    for (std::string& note : TargetNotes(table)) table.notes.push_back(std::move(note));
  }
  for (std::string& note : OrderNotes(snapshot.spec)) table.notes.push_back(std::move(note));
  AddNotes(table);
  for (std::string& note : RulerNotes(table)) table.notes.push_back(std::move(note));
  return table;
}

absl::StatusOr<Table> BuildImportedTable(const std::vector<ImportedRow>& rows, const TableOptions& options) {
  if (rows.empty()) return InvalidArgument("no row to show");
  IHA_ASSIGN_OR_RETURN(const std::vector<PaperHeader> headers, HeadersOf(options.layout));
  Table table{
      .layout = options.layout, .baseline = "", .columns = {}, .rows = {}, .notes = {}, .ruler = {}, .provenance = {}};
  for (const ImportedRow& row : rows) {
    for (const ImportedValue& value : row.values) {
      const auto known = std::find_if(table.columns.begin(), table.columns.end(),
                                      [&](const Column& column) { return column.header == value.column; });
      if (known == table.columns.end()) {
        table.columns.push_back({value.column, kNoEntry, value.metric, value.decimals});
      } else {
        known->decimals = std::max(known->decimals, value.decimals);
      }
    }
  }
  if (options.layout != "generic") {
    std::vector<Column> chosen;
    for (const PaperHeader& header : headers) {
      const auto at = std::find_if(table.columns.begin(), table.columns.end(),
                                   [&](const Column& column) { return column.header == header.text; });
      if (at == table.columns.end()) {
        table.notes.push_back(fmt::format("column {} is left out: no imported row has it", header.text));
      } else {
        chosen.push_back({header.text, kNoEntry, at->metric, header.decimals});
      }
    }
    table.columns = std::move(chosen);
  }
  if (table.columns.empty()) {
    if (options.layout == "generic") return InvalidArgument("the imported rows have no values");
    return InvalidArgument("--layout {}: the imported rows have none of its columns; use --layout generic",
                           options.layout);
  }
  IHA_RETURN_IF_ERROR(AppendImported(table, rows));
  IHA_RETURN_IF_ERROR(Complete(table, options));
  return table;
}

}  // namespace iha::reports
