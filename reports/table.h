// table.h: a sweep as a table value: one row a model, one column a (sweep entry, metric), ready to be rendered.
//
// BuildTable is pure: equal snapshots and options give equal tables, and every renderer (render.h) equal bytes. A
// table holds nothing that differs between equal runs. Deltas and ranks are computed from the exact values, then
// rounded half away from zero. Thread: any.
// Errors: InvalidArgument for an unknown layout, a baseline that is not a row (lists the rows), and two rows of one
// name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/aggregate.h"
#include "reports/imported.h"
#include "reports/rank_spread.h"
#include "reports/ruler_summary.h"
#include "reports/snapshot.h"

namespace iha::reports {

struct TableOptions {
  std::string layout = "generic";  // generic | table1 | table2
  std::string baseline;            // row name; empty = the first row, deltas only with two or more rows
  bool rank_spread = true;         // resamples items to say how sure the average ranks are
  bool printed_deltas = false;     // deltas of the rounded values, as published tables have them; ranks stay exact
  // How many items the whole list of each entry's benchmark has: intervals are about these items (target "benchmark").
  // Absent: about the wider world that they are drawn from.
  std::optional<std::vector<int64_t>> list_items = std::nullopt;
};

inline constexpr size_t kNoEntry = SIZE_MAX;

struct Column {
  std::string header;  // "gsm8k maj@5 (gsm8k.robust)" or the paper's short header
  size_t entry = 0;    // index into SweepSpec::entries; kNoEntry in a table of imported rows only
  std::string metric;  // one of the entry's metrics
  int decimals = 2;    // of the percentage
};

struct TableCell {
  Cell cell;
  std::optional<scoring::Rational> delta;  // in [-1, 1], against the baseline row; absent for the baseline itself
  std::optional<scoring::Rational> rank;   // absent unless the cell is complete
  bool best = false;                       // shares rank 1 with fewer than all models
};

struct TableRow {
  std::string model;
  std::string
      imported;  // "" = scored here; else where its values are from (ImportedRow::source): no counts, no digests
  Digest weights;
  Digest tokenizer;
  std::vector<TableCell> cells;  // one for each column
  std::optional<scoring::Rational> average_rank;
};

// A sample that the official rule of its benchmark passes and nothing confirms (docs/contracts/sandbox.md, VER-4).
struct Suspect {
  std::string model;
  std::string benchmark;
  size_t entry = 0;
  int64_t index = 0;
  std::string item_id;
  int32_t sample = 0;
};

struct Table {
  std::string layout;
  std::string baseline;  // empty: no deltas
  std::vector<Column> columns;
  std::vector<TableRow> rows;          // in sweep order, imported ones behind them
  std::vector<Suspect> suspects = {};  // by row, entry, item, sample
  std::vector<std::string> notes;  // what a reader must see: columns left out, truncation, suspects, incomplete cells
  bool about_the_list = false;     // intervals, see TableOptions::list_items
  std::optional<RankSpread> rank_spread = std::nullopt;  // of the average ranks
  std::vector<RulerSummary> ruler;                       // whatever the layout; of the sweep's rows
  Snapshot provenance;                                   // the snapshot without its item rows
};

// What BuildTable would refuse of `options` for any snapshot of `spec` (metrics filled in): to be asked before hours of
// work whose table nobody could build.
absl::Status CheckTableOptions(const SweepSpec& spec, const TableOptions& options);

// `imported`: rows put behind the sweep's; a value without a column of its own is named in a note.
absl::StatusOr<Table> BuildTable(const Snapshot& snapshot, const TableOptions& options,
                                 const std::vector<ImportedRow>& imported = {});

// A table of nothing but imported rows (at least one). Its columns are those of the rows, in order of appearance; with
// table1 and table2 those that bear the layout's headers, in its order.
absl::StatusOr<Table> BuildImportedTable(const std::vector<ImportedRow>& rows, const TableOptions& options);

// "gsm8k?fewshot=5 k=5 T=0.6 top_p=1 top_k=0 seed=1234 max_new_tokens=256 limit=24": an entry in one line. Where
// nothing is drawn: "choice:FILE?delimiter=_ scored by log-likelihood".
std::string Describe(const SweepEntry& entry);

// A rational in [-1, 1] as a percentage with `decimals` digits, half away from zero: "8.34", "-1.20".
std::string Percent(const scoring::Rational& value, int decimals);
// The same with a sign: "+2.7", "-0.1", "+0.0".
std::string SignedPercent(const scoring::Rational& value, int decimals);

}  // namespace iha::reports
