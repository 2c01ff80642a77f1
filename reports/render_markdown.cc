#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reports/render.h"

namespace iha::reports {
namespace {

// Text that came from outside, safe inside a table cell of CommonMark.
std::string Escaped(const std::string& text) {
  std::string out;
  const auto is_word = [&](size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += ' ';
      continue;
    }
    // An underscore inside a word is an ordinary character; escaping it would only make names hard to read.
    const bool inside_word = c == '_' && i > 0 && is_word(i - 1) && is_word(i + 1);
    if (!inside_word && std::string_view("\\|`*_<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string ValueText(const TableCell& cell, int decimals) {
  if (!cell.cell.value.has_value()) return fmt::format("– ({}/{})", cell.cell.scored, cell.cell.planned);
  std::string value = Percent(*cell.cell.value, decimals);
  if (cell.best) value = "**" + value + "**";
  if (!cell.cell.complete()) value += "*";
  const auto& interval = *cell.cell.interval;
  return fmt::format("{} [{:.1f}, {:.1f}] {}/{}", value, 100 * interval.low, 100 * interval.high, cell.cell.scored,
                     cell.cell.planned);
}

// Whether some value carries the mark of an incomplete cell.
bool HasMark(const Table& table) {
  for (const TableRow& row : table.rows) {
    for (const TableCell& cell : row.cells) {
      if (cell.cell.value.has_value() && !cell.cell.complete()) return true;
    }
  }
  return false;
}

bool HasBest(const Table& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const TableRow& row) {
    return std::any_of(row.cells.begin(), row.cells.end(), [](const TableCell& cell) { return cell.best; });
  });
}

}  // namespace

std::string RenderMarkdown(const Table& table) {
  const bool deltas = !table.baseline.empty();
  const bool ranks = table.rows.size() > 1;
  std::string out = "| Model |";
  std::string rule = "|---|";
  for (const Column& column : table.columns) {
    out += fmt::format(" {} |", Escaped(column.header));
    rule += "---:|";
    if (!deltas) continue;
    out += " Δ |";
    rule += "---:|";
  }
  if (ranks) out += " Avg. Rank |";
  if (ranks) rule += "---:|";
  out += "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    out += fmt::format("| {} |", Escaped(row.model));
    for (size_t c = 0; c < table.columns.size(); c++) {
      const TableCell& cell = row.cells[c];
      const int decimals = table.columns[c].decimals;
      out += fmt::format(" {} |", ValueText(cell, decimals));
      if (deltas) out += fmt::format(" {} |", cell.delta.has_value() ? SignedPercent(*cell.delta, decimals) : "");
    }
    if (ranks) out += fmt::format(" {} |", row.average_rank.has_value() ? row.average_rank->ToFixed(1) : "–");
    out += "\n";
  }
  out += "\n";
  if (deltas) out += fmt::format("Δ in points against {}.\n\n", Escaped(table.baseline));
  if (HasBest(table)) out += "Bold: the best value of its column.\n\n";
  if (HasMark(table)) {
    out += "\\* incomplete: of the items scored so far (the notes say what is missing); no delta, no rank.\n\n";
  }
  for (const std::string& note : table.notes) out += fmt::format("> note: {}\n", Escaped(note));
  if (!table.notes.empty()) out += "\n";
  for (const std::string& line : FooterLines(table)) out += fmt::format("- {}\n", Escaped(line));
  return out;
}

}  // namespace iha::reports
