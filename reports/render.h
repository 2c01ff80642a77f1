// render.h: a Table as text. Same table, same bytes, anywhere: no locale, time, host or path enters.
//
// Model names, benchmark options and sample texts are untrusted: each format escapes them (Markdown pipes and control
// characters, CSV quotes and leading = + - @ of spreadsheets, JSON strings, all that is special to TeX, HTML). Pure;
// thread: any.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "reports/table.h"

namespace iha::reports {

std::string RenderMarkdown(const Table& table);
std::string RenderCsv(const Table& table);
// docs/schemas/table.schema.json describes it; pretty-printed with a final newline.
std::string RenderJson(const Table& table);

// A float with a booktabs table, to be \input: packages booktabs, graphicx and xcolor. Deltas green and red, under each
// row its intervals; the legend, notes and entries stand below, digests in comments. Columns stand in blocks of at most
// six; what is wider than the line or higher than most of a page is made smaller; long names are shown by their
// beginning and a number, whole below; many notes stand behind the float. Characters that pdflatex has no glyph for are
// written as [U+XXXX].
std::string RenderLatex(const Table& table);

// As table.json and run.json list them.
nlohmann::ordered_json SuspectsJson(const std::vector<Suspect>& suspects);

// By name: md | csv | json | latex | html (without samples). InvalidArgument lists them.
absl::StatusOr<std::string> Render(const Table& table, const std::string& format);

// The lines under a table that say what was run: versions, numerics id, digests, seeds.
std::vector<std::string> FooterLines(const Table& table);

// What the marks in the table mean, one line each: the delta, bold, incomplete and imported rows.
std::vector<std::string> LegendLines(const Table& table);

// "–" where there is no value; with a * where it is of an incomplete cell, a † where items exceed the model's context.
std::string ValueText(const TableCell& cell, int decimals);

// The row's name as every table prints it: "NAME" or "NAME (imported)".
std::string RowName(const TableRow& row);

// Text that came from outside, safe inside a table cell of CommonMark (with its strikethrough) and on a terminal.
std::string MarkdownText(const std::string& text);

// One CSV field, quoted where needed; text that a spreadsheet would run as a formula gets a leading apostrophe.
std::string CsvField(const std::string& text);

}  // namespace iha::reports
