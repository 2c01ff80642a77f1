// render_ruler.h: the RULER summaries of a table, for each renderer. Pure; thread: any.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "reports/table.h"

namespace iha::reports {

// The means as plain texts, for renderers that bring their own escapes: one table a setting, the model in the first
// column, "–" where there is no value and a * behind one that is incomplete.
struct RulerTable {
  std::string title;
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
};
std::vector<RulerTable> RulerTables(const Table& table);

// A table a setting: a column a length, then Avg, wAvg inc, wAvg dec, effective length. "" without RULER.
std::string RulerMarkdown(const Table& table);

// The same as columns of a CSV, for all settings: headers, and the fields of one row (as many, "" where there is none).
std::vector<std::string> RulerCsvHeaders(const Table& table);
std::vector<std::string> RulerCsvFields(const Table& table, size_t row);

// table.json's "ruler".
nlohmann::ordered_json RulerJson(const Table& table);

}  // namespace iha::reports
