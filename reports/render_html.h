// render_html.h: a Table as one HTML file that needs no other file and no network.
//
// Columns sort by their header's button; a cell shows its interval and provenance while the pointer or the keyboard's
// focus is on it, with a link to its samples further down; arrow keys move between cells, Escape closes. Light or dark
// as the reader's system. Without scripts all but sorting and arrow keys works. A content security policy allows the
// page's own script and style by their digests and nothing else, so that text from models, escaped as it is, could not
// run even if it were not. Pure; thread: any.
#pragma once

#include <string>
#include <vector>

#include "reports/table.h"

namespace iha::reports {

struct ShownSample {
  std::string item_id;
  int32_t sample = 0;
  std::string text;     // what the model wrote, untrusted
  std::string verdict;  // one line: each metric's answer and score
};

// Samples of one model's job: what a cell links to.
struct SampleGroup {
  size_t row = 0;     // index into Table::rows
  size_t entry = 0;   // index into SweepSpec::entries
  int64_t total = 0;  // samples that the job has; `shown` is a part of them
  std::vector<ShownSample> shown;
};

std::string RenderHtml(const Table& table, const std::vector<SampleGroup>& samples);

}  // namespace iha::reports
