#include "reports/render_html.h"

#include <fmt/format.h>

#include "absl/strings/escaping.h"
#include "common/counted.h"
#include "common/digest.h"
#include "reports/html_assets.h"
#include "reports/html_text.h"
#include "reports/render.h"
#include "reports/render_ruler.h"

namespace iha::reports {
namespace {

// "'sha256-...'": what a content security policy calls an inline text that it allows.
std::string PolicyHash(std::string_view text) {
  const Digest digest = Sha256Of(text);
  const std::string bytes(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  return fmt::format("'sha256-{}'", absl::Base64Escape(bytes));
}

std::string Isolated(std::string_view text) { return fmt::format("<bdi>{}</bdi>", HtmlText(text)); }

std::string GroupId(size_t row, size_t entry) { return fmt::format("samples-{}-{}", row, entry); }

std::string Head(const std::string& title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; script-src {}; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      PolicyHash(kPageStyle), PolicyHash(kPageScript), HtmlText(title), kPageStyle);
}

std::string HeaderCell(const std::string& text, const char* first) {
  return fmt::format("<th scope=\"col\" aria-sort=\"none\"><button type=\"button\" data-first=\"{}\">{}</button></th>",
                     first, Isolated(text));
}

class Page {
 public:
  Page(const Table& table, const std::vector<SampleGroup>& samples)
      : table_(table), samples_(samples), deltas_(!table.baseline.empty()), ranks_(table.rows.size() > 1) {}

  std::string Scores() const {
    std::string out = "<table id=\"scores\">\n<thead><tr>" + HeaderCell("Model", "ascending");
    for (const Column& column : table_.columns) {
      out += HeaderCell(column.header, "descending");
      if (deltas_) out += HeaderCell("Δ", "descending");
    }
    if (ranks_) out += HeaderCell("Avg. Rank", "ascending");
    out += "</tr></thead>\n<tbody>\n";
    for (size_t r = 0; r < table_.rows.size(); r++) out += Row(r);
    return out + "</tbody>\n</table>\n";
  }

  std::string Samples() const {
    if (samples_.empty()) return "";
    std::string out =
        "<h2>Samples</h2>\n<p class=\"muted\">The first samples of the first items that the entry's first metric "
        "holds wrong and right; <code>iha-eval export samples</code> writes all, <code>iha-eval explain</code> an "
        "item's whole story.</p>\n";
    for (const SampleGroup& group : samples_) {
      out += fmt::format("<details id=\"{}\"><summary>{} · {} ({} of {})</summary>\n", GroupId(group.row, group.entry),
                         Isolated(RowName(table_.rows[group.row])),
                         Isolated(Describe(table_.provenance.spec.entries[group.entry])), group.shown.size(),
                         Counted(group.total, "sample"));
      for (const ShownSample& sample : group.shown) {
        out += fmt::format("<div>item {} · sample {} · {}</div>\n<pre dir=\"auto\">\n{}</pre>\n",
                           Isolated(sample.item_id), sample.sample, Isolated(sample.verdict), HtmlText(sample.text));
      }
      out += "</details>\n";
    }
    return out;
  }

 private:
  std::string Row(size_t r) const {
    const TableRow& row = table_.rows[r];
    const std::string name = HtmlText(RowName(row));
    std::string out =
        fmt::format("<tr data-i=\"{}\"><th scope=\"row\" data-v=\"{}\"><bdi>{}</bdi></th>", r, name, name);
    for (size_t c = 0; c < row.cells.size(); c++) {
      out += Value(r, c);
      if (deltas_) out += Delta(row.cells[c], table_.columns[c].decimals);
    }
    if (ranks_) out += AverageRank(r);
    return out + "</tr>\n";
  }

  std::string AverageRank(size_t r) const {
    const auto& rank = table_.rows[r].average_rank;
    if (!rank.has_value()) return "<td>–</td>";
    std::string range;
    if (table_.rank_spread.has_value()) {
      range = fmt::format(" title=\"95 % interval {:.1f} to {:.1f}\"", table_.rank_spread->low[r],
                          table_.rank_spread->high[r]);
    }
    return fmt::format("<td data-v=\"{}\"{}>{}</td>", rank->ToDouble(), range, rank->ToFixed(1));
  }

  std::string Value(size_t r, size_t c) const {
    const TableCell& cell = table_.rows[r].cells[c];
    const std::string tip = fmt::format("tip-{}-{}", r, c);
    const std::string key =
        cell.cell.value.has_value() ? fmt::format(" data-v=\"{}\"", cell.cell.value->ToDouble()) : std::string();
    std::string counts;
    if (table_.rows[r].imported.empty() && !cell.cell.complete()) {
      counts = fmt::format(" <span class=\"muted\">{}/{}</span>", cell.cell.scored, cell.cell.planned);
    }
    return fmt::format(
        "<td class=\"value{}\"{} tabindex=\"0\" aria-describedby=\"{}\"><span class=\"number\">{}</span>{}"
        "<div class=\"tip{}\" role=\"tooltip\" id=\"{}\">{}</div></td>",
        cell.best ? " best" : "", key, tip, ValueText(cell, table_.columns[c].decimals), counts,
        2 * c >= table_.columns.size() ? " right" : "", tip, Tip(r, c));
  }

  static std::string Delta(const TableCell& cell, int decimals) {
    if (!cell.delta.has_value()) return "<td></td>";
    const char* colour = cell.delta->Sign() > 0 ? "gain" : cell.delta->Sign() < 0 ? "loss" : "muted";
    return fmt::format("<td class=\"{}\" data-v=\"{}\">{}</td>", colour, cell.delta->ToDouble(),
                       SignedPercent(*cell.delta, decimals));
  }

  std::string Tip(size_t r, size_t c) const {
    const TableRow& row = table_.rows[r];
    const Column& column = table_.columns[c];
    std::vector<std::string> lines = {fmt::format("{} · {}", RowName(row), column.header)};
    if (!row.imported.empty()) lines.push_back("imported from " + row.imported);
    AppendCounts(row.cells[c], row, lines);
    if (row.imported.empty()) AppendProvenance(row, r, column, lines);
    std::string out;
    for (const std::string& line : lines) out += fmt::format("<span>{}</span>", Isolated(line));
    for (const SampleGroup& group : samples_) {
      if (group.row != r || group.entry != column.entry) continue;
      out += fmt::format("<span><a href=\"#{}\">{} of {}</a></span>", GroupId(r, column.entry), group.shown.size(),
                         Counted(group.total, "sample"));
    }
    return out;
  }

  static void AppendCounts(const TableCell& shown, const TableRow& row, std::vector<std::string>& lines) {
    const Cell& cell = shown.cell;
    if (cell.interval.has_value()) {
      lines.push_back(fmt::format("95 % interval {:.2f} to {:.2f} ({})", 100 * cell.interval->low,
                                  100 * cell.interval->high, NameOf(cell.interval->method)));
    }
    if (shown.rank.has_value()) lines.push_back(fmt::format("rank {}", shown.rank->ToFixed(1)));
    if (!row.imported.empty()) return;
    lines.push_back(fmt::format("{} of {} scored", cell.scored, Counted(cell.planned, "item")));
    for (const auto& [reason, count] : cell.unscored) lines.push_back(fmt::format("{} {}", count, NameOf(reason)));
    lines.push_back(fmt::format("{}: {} cut at the token limit, {} empty, {} without an answer",
                                Counted(cell.samples, "sample"), cell.truncated, cell.empty, cell.invalid));
  }

  void AppendProvenance(const TableRow& row, size_t r, const Column& column, std::vector<std::string>& lines) const {
    const Snapshot& p = table_.provenance;
    const JobSpec& job = p.jobs[r * p.spec.entries.size() + column.entry].spec;
    const auto short_hex = [](const Digest& digest) {
      return digest.empty() ? std::string("not bound") : digest.Hex().substr(0, 16);
    };
    lines.push_back(column.metric);
    lines.push_back(Describe(job.entry));
    lines.push_back(fmt::format("version {} · grader {} · numerics {}", job.benchmark_version, job.grader_version,
                                job.numerics_id));
    lines.push_back(fmt::format("weights {} · tokenizer {}", short_hex(row.weights), short_hex(row.tokenizer)));
    lines.push_back(fmt::format("data {} · prompts {}", short_hex(job.data_digest), short_hex(job.prompt_digest)));
  }

  const Table& table_;
  const std::vector<SampleGroup>& samples_;
  const bool deltas_;
  const bool ranks_;
};

std::string MeansOfRuler(const Table& table) {
  std::string out;
  for (const RulerTable& ruler : RulerTables(table)) {
    out += fmt::format("<h2>{}</h2>\n<table class=\"means\">\n<thead><tr>", HtmlText(ruler.title));
    for (const std::string& header : ruler.headers) {
      out += fmt::format("<th scope=\"col\">{}</th>", Isolated(header));
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : ruler.rows) {
      out += fmt::format("<tr><th scope=\"row\">{}</th>", Isolated(row.front()));
      for (size_t c = 1; c < row.size(); c++) out += fmt::format("<td>{}</td>", Isolated(row[c]));
      out += "</tr>\n";
    }
    out += "</tbody>\n</table>\n";
  }
  return out;
}

std::string List(const std::vector<std::string>& lines) {
  std::string out = "<ul class=\"plain\">\n";
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", Isolated(line));
  return out + "</ul>\n";
}

}  // namespace

std::string RenderHtml(const Table& table, const std::vector<SampleGroup>& samples) {
  const Page page(table, samples);
  const bool stored = !table.provenance.jobs.empty();
  const std::string title =
      stored ? fmt::format("iha-eval · sweep {}", table.provenance.sweep.Hex().substr(0, 16)) : "iha-eval";
  std::string out = Head(title);
  out += fmt::format("<body>\n<h1>{}</h1>\n", HtmlText(title)) + page.Scores();
  out += List(LegendLines(table)) + MeansOfRuler(table);
  if (!table.notes.empty()) out += "<h2>Notes</h2>\n" + List(table.notes);
  out += "<h2>What was run</h2>\n" + List(FooterLines(table));
  out += page.Samples();
  return out + fmt::format("<script>{}</script>\n</body>\n</html>\n", kPageScript);
}

}  // namespace iha::reports
