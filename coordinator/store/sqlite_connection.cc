#include "coordinator/store/sqlite_connection.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

bool IsDiskFull(int error) { return error == ENOSPC || error == EDQUOT; }

}  // namespace

absl::Status DiskFull(const std::string& file) {
  return ResourceExhausted("{}: disk full; nothing of this step was written: free space, then run again", file);
}

absl::Status CheckIsFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return absl::OkStatus();
  return FailedPrecondition("{}: is {}; give a file to --db", path,
                            S_ISDIR(info.st_mode) ? "a folder" : "no regular file");
}

Statement::Statement(Connection* db, sqlite3_stmt* stmt, bool* in_use, absl::Status status)
    : db_(db), stmt_(stmt), in_use_(in_use), status_(std::move(status)) {}

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_), stmt_(other.stmt_), in_use_(other.in_use_), next_(other.next_), status_(other.status_) {
  other.stmt_ = nullptr;
}

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  if (in_use_ == nullptr) {
    sqlite3_finalize(stmt_);
    return;
  }
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
  *in_use_ = false;
}

Statement& Statement::Bound(int rc) {
  if (rc != SQLITE_OK) status_ = db_->Error(rc);
  return *this;
}

Statement& Statement::Int(int64_t value) {
  return status_.ok() ? Bound(sqlite3_bind_int64(stmt_, next_++, value)) : *this;
}

Statement& Statement::Real(double value) {
  return status_.ok() ? Bound(sqlite3_bind_double(stmt_, next_++, value)) : *this;
}

Statement& Statement::Text(std::string_view value) {
  if (!status_.ok()) return *this;
  const char* data = value.data() == nullptr ? "" : value.data();
  return Bound(sqlite3_bind_text64(stmt_, next_++, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

Statement& Statement::Blob(std::string_view value) {
  if (!status_.ok()) return *this;
  const char* data = value.data() == nullptr ? "" : value.data();
  return Bound(sqlite3_bind_blob64(stmt_, next_++, data, value.size(), SQLITE_TRANSIENT));
}

Statement& Statement::Id(const Digest& value) {
  return Blob(std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

Statement& Statement::Time(absl::Time value) { return Int(absl::ToUnixMicros(value)); }

Statement& Statement::Null() { return status_.ok() ? Bound(sqlite3_bind_null(stmt_, next_++)) : *this; }

bool Statement::Row() {
  if (!status_.ok()) return false;
  const int rc = sqlite3_step(stmt_);
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) status_ = db_->Error(rc);
  return false;
}

absl::Status Statement::Run() {
  while (Row()) {
  }
  return status_;
}

bool Statement::IsNull(int column) const { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }
int64_t Statement::GetInt(int column) const { return sqlite3_column_int64(stmt_, column); }
double Statement::GetReal(int column) const { return sqlite3_column_double(stmt_, column); }

std::string Statement::GetString(int column) const {
  const void* data = sqlite3_column_blob(stmt_, column);
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

Digest Statement::GetId(int column) const {
  Digest digest;
  const void* data = sqlite3_column_blob(stmt_, column);
  if (data != nullptr && sqlite3_column_bytes(stmt_, column) == static_cast<int>(digest.bytes.size())) {
    std::memcpy(digest.bytes.data(), data, digest.bytes.size());
  }
  return digest;
}

absl::Time Statement::GetTime(int column) const { return absl::FromUnixMicros(GetInt(column)); }

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, int flags) {
  sqlite3* handle = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Connection> db(new Connection(handle, path));
  if (handle == nullptr) return ResourceExhausted("{}: out of memory while opening the database", path);
  if (rc != SQLITE_OK) return db->Error(rc);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 10'000);
  IHA_RETURN_IF_ERROR(db->Exec("PRAGMA foreign_keys = ON"));
  return db;
}

Connection::~Connection() {
  for (auto& [sql, cached] : cache_) sqlite3_finalize(cached.stmt);
  sqlite3_close(handle_);
}

Statement Connection::Query(const char* sql) {
  Cached& cached = cache_[sql];
  const bool nested = cached.in_use;  // the same text is being stepped: use a statement of its own
  if (cached.stmt == nullptr || nested) {
    sqlite3_stmt* stmt = nullptr;
    const int rc = sqlite3_prepare_v3(handle_, sql, -1, nested ? 0 : SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
    if (rc != SQLITE_OK) return Statement(this, nullptr, nullptr, Error(rc));
    if (nested) return Statement(this, stmt, nullptr, absl::OkStatus());
    cached.stmt = stmt;
  }
  cached.in_use = true;
  return Statement(this, cached.stmt, &cached.in_use, absl::OkStatus());
}

absl::Status Connection::Exec(const char* sql) {
  const int rc = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  return rc == SQLITE_OK ? absl::OkStatus() : Error(rc);
}

absl::Status Connection::SetMaxPages(int64_t pages) {
  return Exec(fmt::format("PRAGMA max_page_count = {}", pages).c_str());  // a pragma takes no parameters
}

absl::Status Connection::Error(int rc) const {
  const std::string file = path_.empty() ? "in-memory database" : path_;
  const char* text = sqlite3_errmsg(handle_);
  const int primary = rc & 0xff;
  // Only a write to the database itself is told as FULL; for its journal, WAL and shared memory the errno says it.
  const bool has_errno = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  if (primary == SQLITE_FULL || (has_errno && IsDiskFull(sqlite3_system_errno(handle_)))) return DiskFull(file);
  switch (primary) {
    case SQLITE_NOMEM:
      return ResourceExhausted("{}: out of memory", file);
    case SQLITE_CORRUPT:
      return DataLoss("{}: the database is damaged ({}); restore a backup", file, text);
    case SQLITE_NOTADB:
      return DataLoss("{}: not an iha-eval database; give another path to --db", file);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return FailedPrecondition("{}: not writable ({}); fix the permissions of the file and its folder", file, text);
    case SQLITE_CANTOPEN:
      return FailedPrecondition("{}: cannot be opened ({}); check that the folder exists and is writable", file, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Unavailable("{}: locked by another process ({}); try again", file, text);
    case SQLITE_IOERR:
      return Unavailable("{}: I/O error ({}, code {}); check the disk, then run again", file, text, rc);
    default:
      return Internal("{}: SQLite error {}: {}", file, rc, text);
  }
}

}  // namespace iha::coordinator
