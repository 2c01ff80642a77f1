#include "coordinator/store/sqlite_store.h"

#include <cctype>
#include <filesystem>

#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sqlite_connection.h"
#include "coordinator/store/sqlite_txn.h"
#include "coordinator/store/sqlite_writer.h"

namespace iha::coordinator {
namespace {

// FILE.lock, for the life of the store. Not the database file itself: closing any descriptor of it would drop SQLite's
// own locks.
absl::StatusOr<FileLock> LockOf(const std::string& db) {
  absl::StatusOr<std::optional<FileLock>> lock = FileLock::TryAcquire(db + ".lock");
  if (absl::IsNotFound(lock.status())) {
    return NotFound("{}: its folder does not exist; create it or give another path to --db", db);
  }
  if (absl::IsResourceExhausted(lock.status())) return DiskFull(db);
  if (!lock.ok()) {
    return FailedPrecondition(
        "{}: not writable ({}); fix the permissions of the file and its folder, or give another path to --db", db,
        std::string(lock.status().message()));
  }
  if (!lock->has_value()) {
    return FailedPrecondition("{}: another coordinator has this database open; stop it or give another path to --db",
                              db);
  }
  return **std::move(lock);
}

// A file in a folder that takes no WAL beside it: nobody has it open (else the WAL would be there), and nobody may
// write it while we read.
absl::StatusOr<std::unique_ptr<Connection>> OpenImmutable(const std::string& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return Connection::Open(uri + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI);
}

absl::StatusOr<std::unique_ptr<Connection>> OpenReader(const std::string& path) {
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<Connection> db,
                       Connection::Open(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX));
  const absl::Status readable = db->Exec("SELECT count(*) FROM sqlite_schema");
  std::error_code ec;
  const bool no_shared_memory = readable.code() == absl::StatusCode::kFailedPrecondition;
  if (no_shared_memory && !std::filesystem::exists(path + "-wal", ec)) {
    if (auto alone = OpenImmutable(path); alone.ok()) db = *std::move(alone);
  }
  IHA_RETURN_IF_ERROR(db->Exec("PRAGMA query_only = ON"));
  return db;
}

// Read-only connections that are free right now. Thread: any.
class ReaderPool {
 public:
  explicit ReaderPool(std::string path) : path_(std::move(path)) {}

  absl::Status Read(const std::function<absl::Status(ReadTxn&)>& fn) {
    IHA_ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Take());
    absl::Status status = db->Exec("BEGIN");
    if (status.ok()) {
      SqliteTxn txn(db.get());
      status = fn(txn);
      const absl::Status end = db->Exec("ROLLBACK");
      if (status.ok()) status = end;
    }
    absl::MutexLock lock(&mu_);
    free_.push_back(std::move(db));
    return status;
  }

 private:
  absl::StatusOr<std::unique_ptr<Connection>> Take() {
    {
      absl::MutexLock lock(&mu_);
      if (!free_.empty()) {
        std::unique_ptr<Connection> db = std::move(free_.back());
        free_.pop_back();
        return db;
      }
    }
    return OpenReader(path_);
  }

  const std::string path_;
  absl::Mutex mu_;
  std::vector<std::unique_ptr<Connection>> free_ ABSL_GUARDED_BY(mu_);
};

class SqliteStore final : public Store {
 public:
  SqliteStore(const SqliteStoreOptions& options, std::optional<FileLock> lock, std::unique_ptr<Connection> db)
      : path_(options.path), lock_(std::move(lock)), writer_(options, std::move(db)), readers_(path_) {}

  absl::Status Write(const std::function<absl::Status(WriteTxn&)>& fn) override {
    return writer_.Run(fn, SqliteWriter::WhenFull::kWait);
  }
  absl::Status TryWrite(const std::function<absl::Status(WriteTxn&)>& fn) override {
    return writer_.Run(fn, SqliteWriter::WhenFull::kRefuse);
  }
  absl::Status Read(const std::function<absl::Status(ReadTxn&)>& fn) override {
    if (!path_.empty()) return readers_.Read(fn);
    return writer_.Run([&fn](WriteTxn& txn) { return fn(txn); }, SqliteWriter::WhenFull::kWait);
  }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const std::optional<FileLock> lock_;  // outlives the connections below; none in memory
  // Closed last: only a connection that may write brings the WAL's content into the file, so that the file alone is
  // the whole database once nobody has it open.
  SqliteWriter writer_;
  ReaderPool readers_;
};

class ReadOnlyStore final : public Store {
 public:
  explicit ReadOnlyStore(const std::string& path) : path_(path), readers_(path) {}
  absl::Status Write(const std::function<absl::Status(WriteTxn&)>&) override {
    return FailedPrecondition("{}: opened for reading only", path_);
  }
  absl::Status TryWrite(const std::function<absl::Status(WriteTxn&)>& fn) override { return Write(fn); }
  absl::Status Read(const std::function<absl::Status(ReadTxn&)>& fn) override { return readers_.Read(fn); }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  ReaderPool readers_;
};

absl::StatusOr<std::unique_ptr<Connection>> OpenWriter(const SqliteStoreOptions& options) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<Connection> db,
                       Connection::Open(options.path.empty() ? ":memory:" : options.path, flags));
  // SQLite falls back to reading when the file is write-protected; better to hear of it now.
  if (db->read_only()) {
    return FailedPrecondition("{}: not writable; fix the permissions of the file, or give another path to --db",
                              options.path);
  }
  if (options.max_pages > 0) IHA_RETURN_IF_ERROR(db->SetMaxPages(options.max_pages));
  IHA_RETURN_IF_ERROR(db->Exec("PRAGMA journal_mode = WAL"));
  IHA_RETURN_IF_ERROR(db->Exec("PRAGMA synchronous = FULL"));
  IHA_RETURN_IF_ERROR(Migrate(db.get()));
  return db;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteStoreOptions& options) {
  std::optional<FileLock> lock;
  if (!options.path.empty()) {
    if (options.path == ":memory:") {
      return InvalidArgument("{}: such a database is gone when the program ends; give a file to --db", options.path);
    }
    IHA_RETURN_IF_ERROR(CheckIsFile(options.path));
    IHA_ASSIGN_OR_RETURN(lock, LockOf(options.path));
  }
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, OpenWriter(options));
  return std::make_unique<SqliteStore>(options, std::move(lock), std::move(db));
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStoreReadOnly(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return NotFound("{}: no such database; check --db", path);
  IHA_RETURN_IF_ERROR(CheckIsFile(path));
  IHA_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db, OpenReader(path));
  IHA_RETURN_IF_ERROR(CheckSchema(db.get()));
  return std::make_unique<ReadOnlyStore>(path);
}

}  // namespace iha::coordinator
