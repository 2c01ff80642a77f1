#include "common/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>

#include "common/errors.h"
#include "common/fault_point.h"
#include "common/status_macros.h"

namespace iha {
namespace {

absl::Status WriteAll(int fd, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t n = write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(path, "write", errno);
    contents.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// "" for the working directory, else with the slash at its end.
std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// A name beside `path` that `make` (errno, 0: made) has made and nobody had before.
absl::StatusOr<std::string> NewName(const std::string& path, const std::function<int(const char*)>& make) {
  const std::string folder = FolderOf(path);
  for (int n = 0;; n++) {
    std::string name = fmt::format("{}.{}.tmp.{}.{}", folder, path.substr(folder.size()), getpid(), n);
    const int error = make(name.c_str());
    if (error == 0) return name;
    if (error != EEXIST && error != EINTR) return ErrnoStatus(path, "create", error);
  }
}

absl::Status SyncFolderOf(const std::string& path) {
  const std::string folder = path.find('/') == std::string::npos ? "." : FolderOf(path);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(folder, "open", errno);
  // Some network file systems refuse fsync of a folder with EINVAL; the rename itself has happened.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return ErrnoStatus(folder, "fsync", errno);
  return absl::OkStatus();
}

// All that happens to the temporary file before the rename.
absl::Status FillTemporary(int fd, std::string_view contents, const std::string& path, const struct stat* old) {
  if (old != nullptr && fchmod(fd, old->st_mode & 07777) != 0) return ErrnoStatus(path, "chmod", errno);
  IHA_RETURN_IF_ERROR(WriteAll(fd, contents, path));
  if (fsync(fd) != 0) return ErrnoStatus(path, "fsync", errno);
  IHA_FAULT_POINT("file.write.before_rename");
  return absl::OkStatus();
}

// In a file that has no name before it is whole: a crash leaves nothing. nullopt where the file system has no such
// files or gives them no name.
absl::StatusOr<std::optional<std::string>> WriteNameless(std::string_view contents, const std::string& path,
                                                         const struct stat* old) {
  const std::string folder = FolderOf(path);
  const UniqueFd fd(open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (!fd.valid()) return std::nullopt;
  IHA_RETURN_IF_ERROR(FillTemporary(fd.get(), contents, path, old));
  const std::string here = fmt::format("/proc/self/fd/{}", fd.get());
  absl::StatusOr<std::string> name = NewName(path, [&](const char* to) {
    return linkat(AT_FDCWD, here.c_str(), AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
  });
  return name.ok() ? std::optional(*std::move(name)) : std::nullopt;
}

absl::StatusOr<std::string> WriteNamed(std::string_view contents, const std::string& path, const struct stat* old) {
  UniqueFd fd;
  IHA_ASSIGN_OR_RETURN(std::string name, NewName(path, [&](const char* to) {
                         fd = UniqueFd(open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
                         return fd.valid() ? 0 : errno;  // not mkstemp: its 0600 would ignore the umask
                       }));
  if (absl::Status status = FillTemporary(fd.get(), contents, path, old); !status.ok()) {
    unlink(name.c_str());
    return status;
  }
  return name;
}

}  // namespace

absl::Status ErrnoStatus(std::string_view path, std::string_view what, int error_number) {
  const std::string reason = std::error_code(error_number, std::generic_category()).message();
  switch (error_number) {
    case ENOENT:
      return NotFound("{}: {}: {}", path, what, reason);
    case ENOSPC:
    case EDQUOT:
      return ResourceExhausted("{}: {}: disk full ({}); free some space and run again", path, what, reason);
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return InvalidArgument("{}: {}: {}", path, what, reason);
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
      return FailedPrecondition("{}: {}: {}", path, what, reason);
    default:
      return Unavailable("{}: {}: {}", path, what, reason);
  }
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

namespace {

absl::Status CheckName(const std::string& path) {
  return path.empty() ? InvalidArgument("\"\": found an empty name, expected a file") : absl::OkStatus();
}

// All of `fd`, which is open for reading and described by `info`.
absl::StatusOr<std::string> ReadOpened(const UniqueFd& fd, const struct stat& info, const std::string& path,
                                       int64_t max_bytes) {
  const auto too_large = [&](int64_t found) {
    return InvalidArgument("{}: has {} bytes or more, expected at most {}", path, found, max_bytes);
  };
  if (S_ISREG(info.st_mode) && info.st_size > max_bytes) return too_large(info.st_size);
  // The size is a hint only: /proc files and pipes say 0, and a file may grow meanwhile.
  std::string contents;
  if (S_ISREG(info.st_mode)) contents.reserve(static_cast<size_t>(info.st_size) + 1);
  constexpr size_t kBlock = size_t{1} << 20;
  while (true) {
    const size_t old_size = contents.size();
    const size_t room = contents.capacity() > old_size ? contents.capacity() - old_size : kBlock;
    contents.resize(old_size + room);
    ssize_t n = 0;
    do n = read(fd.get(), contents.data() + old_size, room);
    while (n < 0 && errno == EINTR);
    if (n < 0) return ErrnoStatus(path, "read", errno);
    contents.resize(old_size + static_cast<size_t>(n));
    if (n == 0) return contents;
    if (static_cast<int64_t>(contents.size()) > max_bytes) return too_large(static_cast<int64_t>(contents.size()));
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  IHA_RETURN_IF_ERROR(CheckName(path));
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(path, "open", errno);
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(path, "stat", errno);
  return ReadOpened(fd, info, path, max_bytes);
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe opens at once, and is refused
  if (!fd.valid()) return ErrnoStatus(path, "open", errno);
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(path, "stat", errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{}: is no regular file; put the file itself there", path);
  return ReadOpened(fd, info, path, max_bytes);
}

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, /*max_bytes=*/1 << 16);
  if (!text.ok()) return text;
  text->erase(text->find_last_not_of(" \r\n\t") + 1);
  if (text->empty()) return InvalidArgument("{}: empty; expected a secret", path);
  return text;
}

absl::Status WriteFileAtomic(const std::string& path, std::string_view contents) {
  IHA_RETURN_IF_ERROR(CheckName(path));
  IHA_RETURN_IF_ERROR(IHA_FAULT_STATUS("file.write.begin"));
  struct stat old = {};
  const bool replaces = stat(path.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) {
    return InvalidArgument("{}: is not a regular file, expected a file to replace or a new name", path);
  }
  const struct stat* const permissions = replaces ? &old : nullptr;
  IHA_ASSIGN_OR_RETURN(std::optional<std::string> temporary, WriteNameless(contents, path, permissions));
  if (!temporary.has_value()) {
    IHA_ASSIGN_OR_RETURN(temporary, WriteNamed(contents, path, permissions));
  }
  if (rename(temporary->c_str(), path.c_str()) != 0) {
    const absl::Status status = ErrnoStatus(path, "rename", errno);
    unlink(temporary->c_str());
    return status;
  }
  IHA_FAULT_POINT("file.write.after_rename");
  return SyncFolderOf(path);
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(path, "create folder", error.value());
  if (!std::filesystem::is_directory(path, error)) return InvalidArgument("{}: is not a folder", path);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FileLock>> FileLock::TryAcquire(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd.valid()) return ErrnoStatus(path, "open", errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<FileLock>();
    return ErrnoStatus(path, "lock", errno);
  }
  return std::optional<FileLock>(FileLock(std::move(fd)));
}

void LineReader::Closer::operator()(FILE* file) const {
  if (file != stdin) std::fclose(file);
}

absl::StatusOr<LineReader> LineReader::Open(const std::string& path, size_t max_line_bytes) {
  IHA_RETURN_IF_ERROR(CheckName(path));
  LineReader reader;
  reader.name_ = path == "-" ? "stdin" : path;
  reader.max_line_bytes_ = max_line_bytes;
  reader.file_.reset(path == "-" ? stdin : std::fopen(path.c_str(), "re"));
  if (reader.file_ == nullptr) return ErrnoStatus(path, "open", errno);
  struct stat info = {};
  if (fstat(fileno(reader.file_.get()), &info) == 0 && S_ISDIR(info.st_mode)) return ErrnoStatus(path, "read", EISDIR);
  return reader;
}

absl::StatusOr<LineReader> LineReader::OfText(std::string name, std::string text, size_t max_line_bytes) {
  LineReader reader;
  reader.name_ = std::move(name);
  reader.max_line_bytes_ = max_line_bytes;
  reader.text_ = std::make_unique<const std::string>(std::move(text));
  reader.file_.reset(fmemopen(const_cast<char*>(reader.text_->data()), reader.text_->size(), "r"));
  if (reader.file_ == nullptr) return ErrnoStatus(reader.name_, "read", errno);
  return reader;
}

absl::StatusOr<std::optional<std::string>> LineReader::Next() {
  std::string line;
  bool too_long = false;
  int c = 0;
  while ((c = getc_unlocked(file_.get())) != EOF && c != '\n') {
    if (line.size() < max_line_bytes_) {
      line.push_back(static_cast<char>(c));
    } else {
      too_long = true;
    }
  }
  if (std::ferror(file_.get()) != 0) {
    // The number of a closed stdin is free for what the program opens first, which may have nothing to read.
    if (file_.get() == stdin && (errno == EBADF || errno == EAGAIN)) {
      return InvalidArgument("stdin: is closed, or gives nothing to read; give a file, or lines on stdin");
    }
    return ErrnoStatus(name_, "read", errno);
  }
  if (c == EOF && line.empty() && !too_long) return std::optional<std::string>();
  line_number_++;
  if (too_long) return InvalidArgument("{}: line is longer than {} bytes", Where(), max_line_bytes_);
  if (c == '\n' && !line.empty() && line.back() == '\r') line.pop_back();
  return std::optional<std::string>(std::move(line));
}

std::string LineReader::Where() const { return fmt::format("{}:{}", name_, line_number_); }

}  // namespace iha
