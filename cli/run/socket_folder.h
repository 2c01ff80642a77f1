// socket_folder.h: a private folder for a run's socket, that goes away whatever becomes of the run.
//
// The folder is PARENT/iha-eval-run-XXXXXX, readable by its owner alone, and locked (flock) while its maker lives: the
// kernel frees the lock when the process dies, however it dies. Make first removes the folders of dead runs of the same
// user, so that what kill -9 leaves behind is there until the next run only. Nothing but the socket and the empty
// folder is ever removed. Not below the output folder: a socket's path must fit into a sockaddr.
// Blocking (a listing of PARENT); thread: any. Errors: those of making a folder; InvalidArgument: the path is too long.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace iha::cli {

class SocketFolder {
 public:
  static absl::StatusOr<std::unique_ptr<SocketFolder>> Make(const std::string& parent);
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Address() const;  // "unix:PATH"

 private:
  SocketFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  const std::string path_;
  const UniqueFd lock_;  // the folder itself, locked
};

}  // namespace iha::cli
