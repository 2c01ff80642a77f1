#include "coordinator/store/backup.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/time/clock.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sqlite_connection.h"

namespace iha::coordinator {
namespace {

// All pages are copied in one step, from one snapshot of the WAL: writers go on. Busy only while a schema changes.
constexpr int kBusyTries = 100;

absl::Status CopyPages(Connection& from, Connection& to) {
  sqlite3_backup* backup = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
  if (backup == nullptr) return to.Error(sqlite3_extended_errcode(to.handle()));
  int rc = SQLITE_BUSY;
  for (int i = 0; i < kBusyTries && (rc == SQLITE_BUSY || rc == SQLITE_LOCKED); i++) {
    if (i > 0) absl::SleepFor(absl::Milliseconds(50));
    rc = sqlite3_backup_step(backup, -1);
  }
  sqlite3_backup_finish(backup);
  if (rc == SQLITE_DONE) return absl::OkStatus();
  // SQLite keeps the error, errno included, with the destination; only these are of the file that was read.
  const int primary = rc & 0xff;
  const bool of_source = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_BUSY;
  return (of_source ? from : to).Error(rc);
}

absl::Status SyncFile(const std::string& path, int flags) {
  const UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(path, "open", errno);
  if (fsync(fd.get()) != 0) return ErrnoStatus(path, "fsync", errno);
  return absl::OkStatus();
}

absl::Status WriteCopy(Connection& from, const std::string& temporary) {
  IHA_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> to,
                       Connection::Open(temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX));
  IHA_RETURN_IF_ERROR(CopyPages(from, *to));
  // One file, without a WAL beside it.
  return to->Exec("PRAGMA journal_mode = DELETE");
}

}  // namespace

absl::Status BackupDatabase(const std::string& db, const std::string& out) {
  std::error_code ec;
  if (!std::filesystem::exists(db, ec)) return NotFound("{}: no such database; check --db", db);
  IHA_RETURN_IF_ERROR(CheckIsFile(db));
  if (std::filesystem::exists(std::filesystem::symlink_status(out, ec))) {
    return AlreadyExists("{}: exists; a backup is never written over, give another path to --out", out);
  }
  IHA_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> from,
                       Connection::Open(db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX));
  IHA_RETURN_IF_ERROR(CheckSchema(from.get()));
  const std::string temporary = fmt::format("{}.{}.tmp", out, getpid());
  absl::Status status = WriteCopy(*from, temporary);
  if (status.ok()) status = SyncFile(temporary, O_RDWR);
  // link, not rename: whatever appeared at `out` in between is left alone.
  if (status.ok() && link(temporary.c_str(), out.c_str()) != 0) status = ErrnoStatus(out, "create", errno);
  unlink(temporary.c_str());
  if (!status.ok()) return status;
  const std::string folder = std::filesystem::path(out).parent_path().string();
  return SyncFile(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

}  // namespace iha::coordinator
