// local_workers.h: the worker processes of an embedded run: started, watched, started again when they die.
//
// A worker that ends before the work is done is started anew, with the same arguments, up to `max_restarts` times in
// all (kill -9 costs its unfinished items only). Worker N is called local-N in every life, so that its new life gives
// up the old one's leases at once. Each worker's stderr goes to OUT/worker-N.log. Start and destroy from the main
// thread: workers die with it, however it dies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/child_process.h"
#include "common/file.h"

namespace iha::cli {

struct LocalWorkerOptions {
  std::string program;  // path of iha-worker
  std::vector<std::string> arguments;
  std::vector<std::string> first_arguments;  // of each worker's first start only: faults that crash tests arm
  std::string log_folder;
  int count = 1;
  int max_restarts = 8;
};

class LocalWorkers {
 public:
  explicit LocalWorkers(LocalWorkerOptions options) : options_(std::move(options)) {}
  // NotFound when the program is not there.
  absl::Status Start();
  // Call while there is work. Reaps workers that ended, however they ended, and restarts them. FailedPrecondition: a
  // worker refused the work (bad input; its last line). Unavailable with the last line of its log once restarts are
  // used up.
  absl::Status Watch();
  // SIGTERM to all; those that are still there after `grace` are killed.
  void Stop(absl::Duration grace);
  int restarts() const { return restarts_; }

 private:
  absl::StatusOr<ChildProcess> StartOne(int index, bool first);
  std::string LogPath(int index) const;

  const LocalWorkerOptions options_;
  std::vector<ChildProcess> workers_;
  std::vector<bool> ended_well_;  // exit code 0 at the last look
  int restarts_ = 0;
};

}  // namespace iha::cli
