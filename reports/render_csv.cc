#include <fmt/format.h>

#include "reports/csv.h"
#include "reports/render.h"
#include "reports/render_ruler.h"

namespace iha::reports {

std::string CsvField(const std::string& text) {
  std::string value = text;
  // A spreadsheet runs text that starts like this as a formula; numbers never pass through here.
  if (!value.empty() && std::string_view("=+-@\t\r").find(value.front()) != std::string_view::npos) {
    value.insert(value.begin(), '\'');
  }
  return QuoteCsv(value);
}

std::string RenderCsv(const Table& table) {
  const bool deltas = !table.baseline.empty();
  const bool ranks = table.rows.size() > 1;
  std::string out = "Model";
  for (const Column& column : table.columns) {
    const std::string name = column.header;
    for (const std::string& suffix :
         {std::string(), std::string(" low"), std::string(" high"), std::string(" scored"), std::string(" planned")}) {
      out += "," + CsvField(name + suffix);
    }
    if (deltas) out += "," + CsvField(name + " delta");
  }
  if (ranks) out += ",Avg. Rank";
  for (const std::string& header : RulerCsvHeaders(table)) out += "," + CsvField(header);
  out += "\n";
  for (size_t m = 0; m < table.rows.size(); m++) {
    const TableRow& row = table.rows[m];
    out += CsvField(RowName(row));
    for (size_t c = 0; c < table.columns.size(); c++) {
      const TableCell& cell = row.cells[c];
      const int decimals = table.columns[c].decimals;
      out += "," + (cell.cell.value.has_value() ? Percent(*cell.cell.value, decimals) : std::string());
      const auto& interval = cell.cell.interval;
      out += interval.has_value() ? fmt::format(",{:.4f},{:.4f}", 100 * interval->low, 100 * interval->high) : ",,";
      out += row.imported.empty() ? fmt::format(",{},{}", cell.cell.scored, cell.cell.planned) : ",,";
      if (deltas) out += "," + (cell.delta.has_value() ? SignedPercent(*cell.delta, decimals) : std::string());
    }
    if (ranks) out += "," + (row.average_rank.has_value() ? row.average_rank->ToFixed(1) : std::string());
    for (const std::string& field : RulerCsvFields(table, m)) out += "," + field;
    out += "\n";
  }
  return out;
}

}  // namespace iha::reports
