// layout.h: which columns a layout shows, in which order, with which headers and digits.
//
// `generic` shows every metric of every entry, by its name (entry_names.h). `table1` and `table2` show the columns of
// the IHA paper's tables that the sweep has; a missing one is left out (LeftOut says so), as is one whose entry was
// decoded in another way than the header says (EM is greedy, table1's P@1 and P@10 are sampled). Pure. InvalidArgument
// for an unknown layout or when no column is left.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/eval_types.h"
#include "reports/table.h"

namespace iha::reports {

absl::StatusOr<std::vector<Column>> ColumnsOf(const SweepSpec& spec, const std::string& layout);

// One note for each column of table1 or table2 that the sweep lacks: what an entry must have to give it.
std::vector<std::string> LeftOut(const SweepSpec& spec, const std::string& layout);

// One note for each column of table1 or table2 that several entries of the sweep could give: which one it shows.
std::vector<std::string> AlsoFitting(const SweepSpec& spec, const std::string& layout);

struct PaperHeader {
  std::string text;
  int decimals = 2;
};
// The headers of table1 or table2 in order; none for generic.
absl::StatusOr<std::vector<PaperHeader>> HeadersOf(const std::string& layout);

}  // namespace iha::reports
