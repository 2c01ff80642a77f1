#include "cli/run/socket_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "iha-eval-run-";
constexpr const char* kSocket = "coordinator.sock";
// Makers and sweepers lock one after another; a maker that loses its new folder to a sweeper makes another.
constexpr int kTries = 16;

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Ours, and still what the path names.
bool IsOurs(int folder, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return fstat(folder, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev && held.st_uid == geteuid();
}

// Under the folder's lock. A folder that holds anything else stays.
void RemoveFolder(int folder, const std::string& path) {
  unlinkat(folder, kSocket, 0);
  rmdir(path.c_str());
}

void RemoveDeadFolders(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    if (!at->path().filename().string().starts_with(kPrefix)) continue;
    const UniqueFd folder = OpenFolder(path);
    if (!folder.valid() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;  // its run lives
    if (IsOurs(folder.get(), path)) RemoveFolder(folder.get(), path);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketFolder>> SocketFolder::Make(const std::string& parent) {
  RemoveDeadFolders(parent);
  for (int i = 0; i < kTries; i++) {
    std::string path = fmt::format("{}/{}XXXXXX", parent, kPrefix);
    if (path.size() + 1 + std::string_view(kSocket).size() >= sizeof(sockaddr_un::sun_path)) {
      return InvalidArgument("{}: too long for a socket's path; set TMPDIR to a shorter folder", parent);
    }
    if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(path, "create folder", errno);
    UniqueFd folder = OpenFolder(path);
    if (!folder.valid() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || !IsOurs(folder.get(), path)) continue;
    return std::unique_ptr<SocketFolder>(new SocketFolder(std::move(path), std::move(folder)));
  }
  return Unavailable("{}: no folder for the run's socket could be kept; try again", parent);
}

SocketFolder::~SocketFolder() { RemoveFolder(lock_.get(), path_); }

std::string SocketFolder::Address() const { return fmt::format("unix:{}/{}", path_, kSocket); }

}  // namespace iha::cli
