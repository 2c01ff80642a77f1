#include "model/checkpoint/temporary_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"

namespace iha::checkpoint {

namespace fs = std::filesystem;

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

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create(const std::string& target) {
  if (target.empty()) return InvalidArgument("output folder: its name is empty; give the path of a new folder");
  const fs::path parent = fs::path(target).parent_path();
  if (!parent.empty()) IHA_RETURN_IF_ERROR(MakeFolders(parent.string()));
  const std::string first = fmt::format("{}.tmp.{}", target, ::getpid());
  std::string path = first;
  for (int i = 1; ::mkdir(path.c_str(), 0777) != 0; ++i) {
    if (errno != EEXIST) return ErrnoStatus(path, "cannot make this folder", errno);
    path = fmt::format("{}.{}", first, i);
  }
  return TemporaryFolder(target, std::move(path));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : target_(std::move(other.target_)), path_(std::exchange(other.path_, "")) {}

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
