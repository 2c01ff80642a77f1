#include "reports/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/counted.h"
#include "common/errors.h"
#include "reports/render_html.h"

namespace iha::reports {
namespace {

// Whether every bit is promised equal on a repeat (DESIGN section 5).
const char* ExactnessOf(const NumericsSpec& numerics) { return numerics.exact() ? "exact" : "sampled"; }

std::string Short(const Digest& digest) { return digest.empty() ? "not bound" : digest.Hex().substr(0, 16); }

template <class Predicate>
bool AnyCell(const Table& table, Predicate predicate) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const TableRow& row) { return std::any_of(row.cells.begin(), row.cells.end(), predicate); });
}

// Whether a row was scored here; imported ones have neither counts nor intervals.
bool HasOwnRow(const Table& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const TableRow& row) { return row.imported.empty(); });
}

}  // namespace

std::vector<std::string> FooterLines(const Table& table) {
  const Snapshot& p = table.provenance;
  std::vector<std::string> lines;
  if (HasOwnRow(table)) {
    lines.push_back(fmt::format("sweep {} · iha-eval {} · numerics {} ({})", p.sweep.Hex().substr(0, 16),
                                p.iha_eval_version, p.spec.numerics.Id(), ExactnessOf(p.spec.numerics)));
  }
  for (const TableRow& row : table.rows) {
    lines.push_back(row.imported.empty() ? fmt::format("model {} · weights {} · tokenizer {}", row.model,
                                                       Short(row.weights), Short(row.tokenizer))
                                         : fmt::format("model {} · imported from {}", row.model, row.imported));
  }
  for (size_t e = 0; e < p.spec.entries.size(); e++) {
    const JobSpec& job = p.jobs[e].spec;
    lines.push_back(fmt::format("{} · version {} · grader {} · {} · data {} · prompts {}", Describe(job.entry),
                                job.benchmark_version, job.grader_version, Counted(job.items, "item"),
                                Short(job.data_digest), Short(job.prompt_digest)));
  }
  lines.push_back(HasOwnRow(table)
                      ? "values in %, 95 % interval in brackets, scored/planned items; items that finished "
                        "without a score count as wrong"
                      : "values in %");
  return lines;
}

std::vector<std::string> LegendLines(const Table& table) {
  std::vector<std::string> lines;
  if (!table.baseline.empty()) lines.push_back(fmt::format("Δ in points against {}.", table.baseline));
  if (AnyCell(table, [](const TableCell& cell) { return cell.best; })) {
    lines.emplace_back("Bold: the best value of its column.");
  }
  if (AnyCell(table, [](const TableCell& cell) { return cell.cell.value.has_value() && !cell.cell.complete(); })) {
    lines.emplace_back("* incomplete: of the items scored so far (the notes say what is missing); no delta, no rank.");
  }
  if (AnyCell(table, [](const TableCell& cell) { return cell.cell.over_context; })) {
    lines.emplace_back("† items longer than the context that the model was made for.");
  }
  const bool imported =
      std::any_of(table.rows.begin(), table.rows.end(), [](const TableRow& row) { return !row.imported.empty(); });
  if (imported)
    lines.emplace_back("Imported rows were not scored by iha-eval: their values are as their source has them.");
  return lines;
}

std::string ValueText(const TableCell& cell, int decimals) {
  if (!cell.cell.value.has_value()) return "–";
  return Percent(*cell.cell.value, decimals) + (cell.cell.complete() ? "" : "*") + (cell.cell.over_context ? "†" : "");
}

std::string RowName(const TableRow& row) { return row.model + (row.imported.empty() ? "" : " (imported)"); }

absl::StatusOr<std::string> Render(const Table& table, const std::string& format) {
  if (format == "md") return RenderMarkdown(table);
  if (format == "csv") return RenderCsv(table);
  if (format == "json") return RenderJson(table);
  if (format == "latex") return RenderLatex(table);
  if (format == "html") return RenderHtml(table, {});
  return InvalidArgument("--format \"{}\": unknown; expected md, csv, json, latex or html", format);
}

}  // namespace iha::reports
