#include "model/checkpoint/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::checkpoint {

namespace fs = std::filesystem;

namespace {

// "TARGET.tmp.HOST.": the locks of another host, over a network file system, are not seen here.
std::string PrefixOf(const std::string& target) {
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return fmt::format("{}.tmp.{}.", target, host);
}

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool TryLock(const UniqueFd& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

bool StillNamed(const std::string& path, const UniqueFd& fd) {
  struct stat here = {}, open = {};
  return ::lstat(path.c_str(), &here) == 0 && ::fstat(fd.get(), &open) == 0 && here.st_ino == open.st_ino;
}

}  // namespace

std::string TemporaryName(const std::string& target, int n) {
  return fmt::format("{}{}{}", PrefixOf(target), ::getpid(), n == 0 ? "" : fmt::format(".{}", n));
}

void RemoveAbandoned(const std::string& target) {
  const std::string prefix = PrefixOf(target);
  const fs::path parent = fs::path(prefix).parent_path();
  const std::string name = fs::path(prefix).filename().string();
  std::error_code error;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string(), found = it->path().filename().string();
    if (!found.starts_with(name) || found.find_first_not_of("0123456789.", name.size()) != std::string::npos) continue;
    std::error_code ignored;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat info = {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))) continue;
    if (TryLock(fd) && StillNamed(path, fd)) fs::remove_all(path, ignored);
  }
}

bool ClaimTemporary(const std::string& path, const UniqueFd& fd) {
  // Where the file system knows no locks, none is taken, and nobody removes anything.
  if (!TryLock(fd) && errno == EWOULDBLOCK) return false;
  return StillNamed(path, fd);
}

std::string NormalFolder(const std::string& out) {
  fs::path target = fs::path(out).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  return target.string();
}

bool IsTaken(const std::string& folder) {
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(folder, error));
  return there && !(fs::is_directory(folder, error) && fs::is_empty(folder, error));
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create(const std::string& target, mode_t mode) {
  if (target.empty()) return InvalidArgument("output folder: its name is empty; give the path of a new folder");
  const fs::path parent = fs::path(target).parent_path();
  if (!parent.empty()) IHA_RETURN_IF_ERROR(MakeFolders(parent.string()));
  RemoveAbandoned(target);
  for (int i = 0;; ++i) {
    // A second number tells apart the folders of one process, and of equal PIDs in several containers.
    std::string path = TemporaryName(target, i);
    if (::mkdir(path.c_str(), mode) != 0) {
      if (errno == EEXIST) continue;
      return ErrnoStatus(path, "cannot make this folder", errno);
    }
    UniqueFd folder = OpenFolder(path);
    if (!folder.valid() && errno != ENOENT) return ErrnoStatus(path, "cannot open this folder", errno);
    if (folder.valid() && ClaimTemporary(path, folder))
      return TemporaryFolder(target, std::move(path), std::move(folder));
  }
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : target_(std::move(other.target_)), path_(std::exchange(other.path_, "")), lock_(std::move(other.lock_)) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

absl::Status TemporaryFolder::Commit() {
  if (std::rename(path_.c_str(), target_.c_str()) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) {
      return AlreadyExists("{}: something else made it meanwhile: remove it or choose another --out", target_);
    }
    return ErrnoStatus(target_, "cannot rename the finished folder to this", errno);
  }
  path_.clear();
  const std::string parent = fs::path(target_).parent_path().string();
  const UniqueFd fd(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) ::fsync(fd.get());  // the rename itself must survive a power cut too
  return absl::OkStatus();
}

}  // namespace iha::checkpoint
