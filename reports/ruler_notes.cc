#include "reports/ruler_notes.h"

#include <fmt/format.h>

#include "benchmarks/scoring/ruler_means.h"

namespace iha::reports {
namespace {

bool OfGeneratedHaystack(const SweepEntry& entry) {
  const auto haystack = entry.benchmark.options.find(scoring::kRulerHaystackOption);
  return haystack != entry.benchmark.options.end() && haystack->second == scoring::kGeneratedHaystack;
}

}  // namespace

std::vector<std::string> RulerNotes(const Table& table) {
  std::vector<std::string> notes;
  const std::vector<SweepEntry>& entries = table.provenance.spec.entries;
  std::vector<int64_t> samples(table.rows.size());
  std::vector<int64_t> truncated(table.rows.size());
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
      samples[m] += cell.samples;
      truncated[m] += cell.truncated;
      if (!cell.over_context) continue;
      const JobRows& job = table.provenance.jobs[m * entries.size() + column.entry];
      notes.push_back(fmt::format("{} / {}: {} tokens an item, beyond the model's context of {}", table.rows[m].model,
                                  column.header, ruler->length, job.context_tokens));
    }
  }
  for (size_t m = 0; m < table.rows.size(); m++) {
    if (truncated[m] == 0) continue;
    notes.push_back(fmt::format("{}: {} of {} samples of RULER ended at their limit of new tokens", table.rows[m].model,
                                truncated[m], samples[m]));
  }
  return notes;
}

}  // namespace iha::reports
