// backup.h: a copy of a database file while a coordinator goes on writing to it (SQLite's online backup).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace iha::coordinator {

// `out` is whole or absent: the copy is made beside it, synced and renamed. It holds every transaction that was durable
// when the copy began. An existing `out` is refused. Blocking (the size of the file). Thread: any.
// Errors: those of OpenSqliteStoreReadOnly for `db`; AlreadyExists (`out` is there: give another path), Unavailable
// (the file stayed locked: try again), those of common/file.h for the disk.
absl::Status BackupDatabase(const std::string& db, const std::string& out);

}  // namespace iha::coordinator
