// render.h: a Table as text. Same table, same bytes, anywhere: no locale, time, host or path enters.
//
// Model names and benchmark options are untrusted: each format escapes them (Markdown pipes and control characters, CSV
// quotes and leading = + - @ of spreadsheets, JSON strings). Pure; thread: any.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reports/table.h"

namespace iha::reports {

std::string RenderMarkdown(const Table& table);
std::string RenderCsv(const Table& table);
// docs/schemas/table.schema.json describes it; pretty-printed with a final newline.
std::string RenderJson(const Table& table);

// By name: md | csv | json. InvalidArgument lists them.
absl::StatusOr<std::string> Render(const Table& table, const std::string& format);

// The lines under a table that say what was run: versions, numerics id, digests, seeds.
std::vector<std::string> FooterLines(const Table& table);

// One CSV field, quoted where needed; text that a spreadsheet would run as a formula gets a leading apostrophe.
std::string CsvField(const std::string& text);

}  // namespace iha::reports
