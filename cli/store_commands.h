// store_commands.h: what `table` and `list` read from a database file instead of from a running coordinator.
// Read-only, beside a coordinator that may be writing. Errors: those of OpenSqliteStoreReadOnly, NotFound.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/coordinator_api.h"
#include "reports/table.h"

namespace iha::cli {

// `sweep`: the id or a prefix of it that is unique in the file. `grader`: see ReadSnapshot.
absl::StatusOr<std::string> TableFromFile(const std::string& db, const std::string& sweep,
                                          const reports::TableOptions& options, const std::string& format,
                                          const std::string& grader);
absl::StatusOr<std::vector<SweepSummary>> ListFromFile(const std::string& db);

}  // namespace iha::cli
