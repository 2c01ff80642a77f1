// Result files of other tools are untrusted: each reader takes any bytes or refuses them with a message of one line;
// what it takes is a share in each value, and a table that every format can show.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reports/imported.h"
#include "reports/lm_eval.h"
#include "reports/rank_csv.h"
#include "reports/render.h"
#include "reports/render_html.h"
#include "reports/table.h"

namespace {

using iha::reports::ImportedRow;

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireOneLine(const absl::Status& status) {
  Require(!status.message().empty() && status.message().find('\n') == absl::string_view::npos);
}

void RequireShares(const ImportedRow& row) {
  for (const auto& value : row.values) {
    if (!value.value.has_value()) continue;
    Require(value.value->Sign() >= 0 && value.value->ToDouble() <= 1.0);
    if (value.interval.has_value()) Require(0.0 <= value.interval->low && value.interval->high <= 1.0);
  }
}

void Show(const std::vector<ImportedRow>& rows) {
  const auto merged = iha::reports::MergedRows(rows);
  if (!merged.ok()) return RequireOneLine(merged.status());
  const auto table = iha::reports::BuildImportedTable(*merged, {});
  if (!table.ok()) return RequireOneLine(table.status());
  Require(!iha::reports::RenderMarkdown(*table).empty());
  Require(!iha::reports::RenderCsv(*table).empty());
  Require(!iha::reports::RenderJson(*table).empty());
  Require(!iha::reports::RenderLatex(*table).empty());
  Require(!iha::reports::RenderHtml(*table, {}).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ImportedRow> all;
  if (auto rows = iha::reports::ImportCsv(text, "fuzz"); rows.ok()) {
    for (const ImportedRow& row : *rows) RequireShares(row);
    if (!rows->empty()) Show(*rows);
  } else {
    RequireOneLine(rows.status());
  }
  for (auto& row : {iha::reports::ImportLmEvalResults(text, "fuzz"),
                    iha::reports::ImportLmEvalSamples(text, "gsm8k", "model", "fuzz")}) {
    if (!row.ok()) {
      RequireOneLine(row.status());
      continue;
    }
    RequireShares(*row);
    Show({*row});
  }
  return 0;
}
