#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/text.h"
#include "reports/render.h"
#include "reports/render_ruler.h"

namespace iha::reports {
namespace {

std::string CellText(const TableRow& row, const TableCell& cell, int decimals) {
  const std::string counts = row.imported.empty() ? fmt::format("{}/{}", cell.cell.scored, cell.cell.planned) : "";
  if (!cell.cell.value.has_value()) return counts.empty() ? "–" : fmt::format("– ({})", counts);
  std::string value = Percent(*cell.cell.value, decimals);
  if (cell.best) value = "**" + value + "**";
  if (!cell.cell.complete()) value += "*";
  if (cell.cell.over_context) value += "†";
  if (!cell.cell.interval.has_value()) return value;
  const auto& interval = *cell.cell.interval;
  return fmt::format("{} [{:.1f}, {:.1f}]{}{}", value, 100 * interval.low, 100 * interval.high,
                     counts.empty() ? "" : " ", counts);
}

// "&lt;" and its like, which Markdown would show as what they stand for.
bool IsEntity(std::string_view text) {
  size_t end = 1;
  while (end < text.size() && (text[end] == '#' || std::isalnum(static_cast<unsigned char>(text[end])) != 0)) end++;
  return end > 1 && end < text.size() && text[end] == ';';
}

}  // namespace

std::string MarkdownText(const std::string& text) {
  std::string safe = text;
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  safe = TerminalSafe(safe);  // a table is read in terminals, too
  std::string out;
  const auto is_word = [&](size_t i) {
    return i < safe.size() && std::isalnum(static_cast<unsigned char>(safe[i])) != 0;
  };
  for (size_t i = 0; i < safe.size(); i++) {
    const char c = safe[i];
    // An underscore inside a word is an ordinary character; escaping it would only make names hard to read.
    const bool inside_word = c == '_' && i > 0 && is_word(i - 1) && is_word(i + 1);
    const bool special = c == '&' ? IsEntity(std::string_view(safe).substr(i))
                                  : std::string_view("\\|`*_<>[]~").find(c) != std::string_view::npos;
    if (special && !inside_word) out += '\\';
    out += c;
  }
  return out;
}

std::string RenderMarkdown(const Table& table) {
  const bool deltas = !table.baseline.empty();
  const bool ranks = table.rows.size() > 1;
  std::string out = "| Model |";
  std::string rule = "|---|";
  for (const Column& column : table.columns) {
    out += fmt::format(" {} |", MarkdownText(column.header));
    rule += "---:|";
    if (!deltas) continue;
    out += " Δ |";
    rule += "---:|";
  }
  if (ranks) out += " Avg. Rank |";
  if (ranks) rule += "---:|";
  out += "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    out += fmt::format("| {} |", MarkdownText(RowName(row)));
    for (size_t c = 0; c < table.columns.size(); c++) {
      const TableCell& cell = row.cells[c];
      const int decimals = table.columns[c].decimals;
      out += fmt::format(" {} |", CellText(row, cell, decimals));
      if (deltas) out += fmt::format(" {} |", cell.delta.has_value() ? SignedPercent(*cell.delta, decimals) : "");
    }
    if (ranks) out += fmt::format(" {} |", row.average_rank.has_value() ? row.average_rank->ToFixed(1) : "–");
    out += "\n";
  }
  out += "\n";
  out += RulerMarkdown(table);
  for (const std::string& line : LegendLines(table)) out += MarkdownText(line) + "\n\n";
  for (const std::string& note : table.notes) out += fmt::format("> note: {}\n", MarkdownText(note));
  if (!table.notes.empty()) out += "\n";
  for (const std::string& line : FooterLines(table)) out += fmt::format("- {}\n", MarkdownText(line));
  return out;
}

}  // namespace iha::reports
