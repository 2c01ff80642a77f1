#include "reports/render.h"

#include <fmt/format.h>

#include "common/errors.h"

namespace iha::reports {
namespace {

// Whether every bit is promised equal on a repeat (DESIGN section 5).
const char* ExactnessOf(const NumericsSpec& numerics) { return numerics.exact() ? "exact" : "sampled"; }

std::string Short(const Digest& digest) { return digest.empty() ? "not bound" : digest.Hex().substr(0, 16); }

}  // namespace

std::vector<std::string> FooterLines(const Table& table) {
  const Snapshot& p = table.provenance;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("sweep {} · iha-eval {} · numerics {} ({})", p.sweep.Hex().substr(0, 16),
                              p.iha_eval_version, p.spec.numerics.Id(), ExactnessOf(p.spec.numerics)));
  for (const TableRow& row : table.rows) {
    lines.push_back(
        fmt::format("model {} · weights {} · tokenizer {}", row.model, Short(row.weights), Short(row.tokenizer)));
  }
  for (size_t e = 0; e < p.spec.entries.size(); e++) {
    const JobSpec& job = p.jobs[e].spec;
    lines.push_back(fmt::format("{} · version {} · grader {} · {} items · data {} · prompts {}", Describe(job.entry),
                                job.benchmark_version, job.grader_version, job.items, Short(job.data_digest),
                                Short(job.prompt_digest)));
  }
  lines.push_back(
      "values in %, 95 % interval in brackets, scored/planned items; items that finished without a score "
      "count as wrong");
  return lines;
}

absl::StatusOr<std::string> Render(const Table& table, const std::string& format) {
  if (format == "md") return RenderMarkdown(table);
  if (format == "csv") return RenderCsv(table);
  if (format == "json") return RenderJson(table);
  return InvalidArgument("--format \"{}\": unknown; expected md, csv or json", format);
}

}  // namespace iha::reports
