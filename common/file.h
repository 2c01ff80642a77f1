// file.h: whole files in and out, locks, and input lines. Every error names the path and the system's reason.
//
// Blocking; thread: any, an object belongs to one thread. Errors: NotFound (no such file), ResourceExhausted (disk
// full), InvalidArgument (a directory, too large), FailedPrecondition (no permission, read-only), Unavailable (I/O).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace iha {

// "PATH: WHAT: strerror" with the code that the list above gives to `error_number`.
absl::Status ErrnoStatus(std::string_view path, std::string_view what, int error_number);

// An owned file descriptor. Move-only; closes on destruction.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { Close(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

inline constexpr int64_t kMaxTextFileBytes = int64_t{1} << 32;

// The bytes of a file. InvalidArgument if it has more than max_bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = kMaxTextFileBytes);

// The same of a regular file; InvalidArgument, at once, for anything else: of a named pipe without a writer ReadFile
// would wait for good. For files whose name comes from a folder that someone else filled.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes = kMaxTextFileBytes);

// A secret kept in a file: its contents without trailing white space. InvalidArgument when nothing is left: sending no
// secret in place of one that was asked for would only fail later and elsewhere.
absl::StatusOr<std::string> ReadSecret(const std::string& path);

// Replaces `path` as one step: a temporary file beside it, fsync, rename, fsync of the folder. On an error the old file
// is untouched and nothing else left; a crash can leave `.NAME.tmp.PID.N` where files need names (NFS). Refuses to
// replace anything but a regular file. Permissions: those of the file it replaces, else 0666 less the umask.
absl::Status WriteFileAtomic(const std::string& path, std::string_view contents);

// Makes `path` and its missing parents (mode 0777 less the umask); OK if it is a folder already.
absl::Status MakeFolders(const std::string& path);

// A lock file held for the object's life (flock: given up when the process dies, however it dies).
class FileLock {
 public:
  // Creates the file if need be. nullopt, at once, if another process has it.
  static absl::StatusOr<std::optional<FileLock>> TryAcquire(const std::string& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Lines of a file or of stdin ("-"), ended by \n or by the end of the input; a \r before \n is dropped.
class LineReader {
 public:
  static constexpr size_t kDefaultMaxLine = size_t{256} << 20;

  static absl::StatusOr<LineReader> Open(const std::string& path, size_t max_line_bytes = kDefaultMaxLine);
  // The lines of `text`, which messages call `name`. Unavailable: out of memory.
  static absl::StatusOr<LineReader> OfText(std::string name, std::string text, size_t max_line_bytes = kDefaultMaxLine);
  // The next line, nullopt at the end. InvalidArgument for a line longer than the limit: the line is skipped and the
  // next call gives the one after it.
  absl::StatusOr<std::optional<std::string>> Next();
  // Of the line last returned, from 1.
  int64_t line_number() const { return line_number_; }
  // "FILE:LINE", "stdin:LINE": the prefix of messages about the line last returned.
  std::string Where() const;

 private:
  struct Closer {
    void operator()(FILE* file) const;
  };
  std::string name_;
  std::unique_ptr<const std::string> text_;  // what file_ reads, unless it is a file
  std::unique_ptr<FILE, Closer> file_;
  size_t max_line_bytes_ = 0;
  int64_t line_number_ = 0;
};

}  // namespace iha
