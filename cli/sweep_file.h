// sweep_file.h: sweep.json, the one description of a sweep that `run --sweep` and `submit` take (docs/formats.md).
//
// JSON with // comments. Unknown or wrongly typed fields are errors that name the path ("benchmarks[1].temprature:
// unknown field (did you mean "temperature"?)"). Fields that are left out take the defaults of SweepSpec and of the
// benchmark. `template_date` becomes the option of that name of each benchmark that has it and does not give its own.
// Pure; thread: any.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/eval_types.h"

namespace iha::cli {

// InvalidArgument: "WHERE: PATH: found ..., expected ...". `where` names the source in messages.
absl::StatusOr<SweepSpec> ParseSweep(std::string_view json, const std::string& where);

// The file form of a spec, all fields written out; ParseSweep gives the same spec back.
std::string SweepToJson(const SweepSpec& spec);

// A commented file with the paper's settings: "table1", "table2", "ruler". InvalidArgument lists the
// names.
absl::StatusOr<std::string> ExampleSweep(const std::string& name);

}  // namespace iha::cli
