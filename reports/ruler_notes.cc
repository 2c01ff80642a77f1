#include "reports/ruler_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/scoring/ruler_means.h"
#include "common/counted.h"

namespace iha::reports {
namespace {

bool OfGeneratedHaystack(const SweepEntry& entry) {
  const auto haystack = entry.benchmark.options.find(scoring::kRulerHaystackOption);
  return haystack != entry.benchmark.options.end() && haystack->second == scoring::kGeneratedHaystack;
}

// Over all of a model's cells.
struct Sums {
  int64_t items = 0;
  int64_t over_length = 0;
  int64_t most_over_length = 0;
  int64_t samples = 0;
  int64_t truncated = 0;

  void Add(const Cell& cell) {
    items += cell.planned;
    over_length += cell.over_length;
    most_over_length = std::max(most_over_length, cell.most_over_length);
    samples += cell.samples;
    truncated += cell.truncated;
  }
  void AddNotes(const std::string& model, std::vector<std::string>& notes) const {
    if (over_length > 0) {
      notes.push_back(fmt::format("{}: {} of {} of RULER exceed their length by up to {}, new tokens included", model,
                                  over_length, Counted(items, "item"),
                                  most_over_length == 1 ? "a token" : Counted(most_over_length, "token")));
    }
    if (truncated > 0) {
      notes.push_back(fmt::format("{}: {} of {} of RULER ended at their limit of new tokens", model, truncated,
                                  Counted(samples, "sample")));
    }
  }
};

}  // namespace

std::vector<std::string> RulerNotes(const Table& table) {
  std::vector<std::string> notes;
  const std::vector<SweepEntry>& entries = table.provenance.spec.entries;
  std::vector<Sums> sums(table.rows.size());  // of each model
  for (size_t c = 0; c < table.columns.size(); c++) {
    const Column& column = table.columns[c];
    if (column.entry >= entries.size() || (c > 0 && table.columns[c - 1].entry == column.entry)) continue;
    const auto ruler = scoring::ParseRulerCell(entries[column.entry].benchmark.name);
    if (!ruler.has_value()) continue;
    if (OfGeneratedHaystack(entries[column.entry])) {
      notes.push_back(column.header +
                      ": a generated haystack in the place of essays; compare it with no published score");
    }
    for (size_t m = 0; m < table.rows.size(); m++) {
      const Cell& cell = table.rows[m].cells[c].cell;
      sums[m].Add(cell);
      if (!cell.over_context) continue;
      const JobRows& job = table.provenance.jobs[m * entries.size() + column.entry];
      notes.push_back(fmt::format("{} / {}: {} tokens an item, beyond the model's context of {}", table.rows[m].model,
                                  column.header, ruler->length, job.context_tokens));
    }
  }
  for (size_t m = 0; m < table.rows.size(); m++) sums[m].AddNotes(table.rows[m].model, notes);
  return notes;
}

}  // namespace iha::reports
