// temporary_folder.h: a folder in the making: whole at its place, or absent.
//
// Create makes a new TARGET.tmp.HOST.PID beside the target; Commit renames it there. Destroyed before Commit, it is
// removed with all it holds. One that a crash left is removed by the next Create for the same target on the same host:
// a living one is locked (flock), whatever PID namespace its process lives in. Blocking; one thread. Errors:
// InvalidArgument (no name), those of common/file.h. Whether the target is free is the caller's to ask (IsTaken).
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file.h"

namespace iha::checkpoint {

// `out` without a trailing slash.
std::string NormalFolder(const std::string& out);
// Something other than an empty folder lies there (what cannot be looked at counts as absent).
bool IsTaken(const std::string& folder);

// A file or folder in the making is called TARGET.tmp.HOST.PID, with ".N" where that is taken, and locked.
std::string TemporaryName(const std::string& target, int n);
// Locks what this process has just made. False: another process took it for abandoned before it was locked.
bool ClaimTemporary(const std::string& path, const UniqueFd& fd);
// Removes the files and folders in the making for `target` on this host that no living process has locked.
void RemoveAbandoned(const std::string& target);

class TemporaryFolder {
 public:
  // `target`: as NormalFolder gives it. Its parents are made.
  static absl::StatusOr<TemporaryFolder> Create(const std::string& target, mode_t mode = 0777);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  // Takes the place of the target, which is absent or an empty folder, and makes that durable.
  absl::Status Commit();

 private:
  TemporaryFolder(std::string target, std::string path, UniqueFd lock)
      : target_(std::move(target)), path_(std::move(path)), lock_(std::move(lock)) {}
  std::string target_;
  std::string path_;  // "": gone
  UniqueFd lock_;     // of the folder
};

}  // namespace iha::checkpoint
