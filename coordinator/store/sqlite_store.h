// sqlite_store.h: Store over one SQLite file (WAL, synchronous=FULL), one writer thread with group commit.
//
// Opening creates the file, migrates an older schema and takes `FILE.lock`: a second coordinator on the same file is
// refused. Errors of Open name the file: FailedPrecondition (newer schema, not writable, in use), DataLoss (not a
// database, corrupt), NotFound (its folder is absent).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

struct SqliteStoreOptions {
  std::string path;          // "" = in memory: reads run on the writer thread, nothing survives
  size_t queue_limit = 256;  // waiting writes
  size_t group_limit = 64;   // writes in one commit
  int64_t max_pages = 0;     // > 0: the file may not grow past it (quota)
  // Hears of each write that the file could not take (disk full, I/O error, damage). Called on the writer thread.
  std::function<void(const absl::Status& status)> on_failed_write = nullptr;
};

// Blocks while a migration runs.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteStoreOptions& options);
// For reports on a file that a coordinator may be writing: no lock, no writer; Write fails with FailedPrecondition.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStoreReadOnly(const std::string& path);

}  // namespace iha::coordinator
