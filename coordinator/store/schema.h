// schema.h: the database's numbered migrations. A migration that has shipped never changes; a change is a new one.
#pragma once

#include "absl/status/status.h"
#include "coordinator/store/sqlite_connection.h"

namespace iha::coordinator {

// Version of the schema that this program writes.
int SchemaVersion();

// Brings `db` from its version (0 = empty file) to SchemaVersion() in one transaction for each step.
// FailedPrecondition when the file is newer than this program; DataLoss when it is another program's database.
absl::Status Migrate(Connection* db);
// The checks of Migrate without writing: for read-only use. FailedPrecondition also when the file is older.
absl::Status CheckSchema(Connection* db);

}  // namespace iha::coordinator
