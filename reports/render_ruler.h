// render_ruler.h: the RULER summaries of a table, for each renderer. Pure; thread: any.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "reports/table.h"

namespace iha::reports {

// A table a setting: a column a length, then Avg, wAvg inc, wAvg dec, effective length. "" without RULER.
std::string RulerMarkdown(const Table& table);

// The same as columns of a CSV, for all settings: headers, and the fields of one row (as many, "" where there is none).
std::vector<std::string> RulerCsvHeaders(const Table& table);
std::vector<std::string> RulerCsvFields(const Table& table, size_t row);

// table.json's "ruler".
nlohmann::ordered_json RulerJson(const Table& table);

}  // namespace iha::reports
