// sqlite_connection.h: RAII over sqlite3 with sticky statement errors, used inside store/ only.
//
//   Statement q = db.Query("SELECT a FROM t WHERE b = ?");
//   q.Text(name);
//   while (q.Row()) use(q.GetInt(0));
//   IHA_RETURN_IF_ERROR(q.status());
//
// All values are bound, never spliced into SQL: strings of peers and models are untrusted.
// Thread: a Connection and its statements belong to one thread at a time.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/digest.h"

namespace iha::coordinator {

class Connection;

// What a caller hears when the disk that `file` lies on (or a quota) is full.
absl::Status DiskFull(const std::string& file);
// FailedPrecondition unless `path` is a regular file or nothing yet: SQLite would wait for the writer of a pipe, and
// make a journal beside a device.
absl::Status CheckIsFile(const std::string& path);

// Borrows a cached prepared statement, resets it when it goes. After an error every call does nothing.
class Statement {
 public:
  Statement(Connection* db, sqlite3_stmt* stmt, bool* in_use, absl::Status status);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  // Bind the next parameter.
  Statement& Int(int64_t value);
  Statement& Real(double value);
  Statement& Text(std::string_view value);
  Statement& Blob(std::string_view value);
  Statement& Id(const Digest& value);
  Statement& Time(absl::Time value);  // microseconds since 1970
  Statement& Null();

  // Steps; true = a row is there to read.
  bool Row();
  // Steps to the end of a statement whose rows do not matter.
  absl::Status Run();
  const absl::Status& status() const { return status_; }

  bool IsNull(int column) const;
  int64_t GetInt(int column) const;
  double GetReal(int column) const;
  std::string GetString(int column) const;  // TEXT or BLOB, raw bytes
  Digest GetId(int column) const;           // zero unless it holds 32 bytes
  absl::Time GetTime(int column) const;

 private:
  Statement& Bound(int rc);
  Connection* db_;
  sqlite3_stmt* stmt_;
  bool* in_use_;  // of the cache entry; null: the statement is this object's own
  int next_ = 1;
  absl::Status status_;
};

class Connection {
 public:
  // `flags` as sqlite3_open_v2. Turns foreign keys on and extended result codes on.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, int flags);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Statement Query(const char* sql);
  absl::Status Exec(const char* sql);  // one or more statements without parameters
  int64_t changes() const { return sqlite3_changes64(handle_); }
  int64_t last_insert_rowid() const { return sqlite3_last_insert_rowid(handle_); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
  bool read_only() const { return sqlite3_db_readonly(handle_, "main") == 1; }
  absl::Status SetMaxPages(int64_t pages);
  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }  // for the backup API
  // The status for a result code, with the file's name and what to do.
  absl::Status Error(int rc) const;

 private:
  friend class Statement;
  Connection(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  struct Cached {
    sqlite3_stmt* stmt = nullptr;
    bool in_use = false;
  };
  sqlite3* handle_;
  std::string path_;
  std::unordered_map<const char*, Cached> cache_;  // by the literal's address: SQL texts are literals
};

}  // namespace iha::coordinator
