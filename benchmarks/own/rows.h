// rows.h: the rows of a user's own data file: JSON Lines, one object a line, blank lines skipped.
//
// Thread: any. Source: CLI.md (own data), DESIGN section 9 (a bad file is bad input, exit 3, not a usage error).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/own/template_text.h"
#include "common/eval_types.h"
#include "nlohmann/json_fwd.hpp"

namespace iha::benchmarks {

// Called with each row in order, its option `prompt` parsed, and its id: the field "id", else "row/INDEX".
using RowReader = std::function<absl::Status(const nlohmann::json& row, const std::vector<TemplatePart>& prompt,
                                             const std::string& id)>;

// The bytes of the file that a benchmark's `name` ("jsonl:FILE") gives behind `prefix`. InvalidArgument: none is given;
// DataLoss: a folder, or too large; else ReadFile's.
absl::StatusOr<std::string> ReadRowsFile(const std::string& name, std::string_view prefix);

// InvalidArgument "option prompt: ...". DataLoss "FILE:LINE[:COLUMN]: ...": a line that is no JSON object, has a field
// or an id that is there already, or that `read` refused with any error; "FILE: ...": no row at all. The caller reports
// it; nothing can be retried.
absl::Status ForEachRow(const std::string& path, std::string_view bytes, const BenchmarkRef& ref,
                        const RowReader& read);

}  // namespace iha::benchmarks
