// local_workers.h: the worker processes of an embedded run: started, watched, started again when they die.
//
// A worker that ends before the work is done is started anew, with the same arguments, up to `max_restarts` times in
// all (kill -9 costs its unfinished items only): after a pause that doubles with each short life, so that what kills it
// at once (no memory, a full disk) has the time to go away. Worker N is called local-N in every life, so that its new
// life gives up the old one's leases at once. Each worker's stderr goes to OUT/worker-N.log. Start and destroy from the
// main thread: workers die with it, however it dies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/child_process.h"
#include "common/clock.h"
#include "common/retry.h"

namespace iha::cli {

struct LocalWorkerOptions {
  std::string program;  // path of iha-worker
  std::vector<std::string> arguments;
  std::vector<std::string> first_arguments;  // of each worker's first start only: faults that crash tests arm
  std::string log_folder;
  int count = 1;
  int max_restarts = 8;
  BackoffPolicy backoff = {.initial = absl::Milliseconds(200), .maximum = absl::Seconds(10)};
  // A life of at least this length says that the next pause is a first one again.
  absl::Duration long_life = absl::Seconds(60);
};

class LocalWorkers {
 public:
  // `clock` outlives the object.
  LocalWorkers(LocalWorkerOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {}
  // NotFound when the program is not there.
  absl::Status Start();
  // Call every fraction of a second while there is work. Reaps workers that ended, however they ended, and restarts
  // those whose pause is over. FailedPrecondition: a worker refused the work (bad input; its last line). Unavailable
  // with the last line of its log once restarts are used up.
  absl::Status Watch();
  // SIGTERM to all; those that are still there after `grace` are killed.
  void Stop(absl::Duration grace);
  int restarts() const { return restarts_; }

 private:
  struct Slot {
    std::optional<ChildProcess> process;
    absl::Duration started;
    bool ended_well = false;                   // exit code 0 at the last look
    int short_lives = 0;                       // in a row
    std::optional<absl::Duration> restart_at;  // set: the process has ended and is missed
  };

  absl::Status StartOne(int index, bool first);
  absl::Status Look(int index);
  std::string LogPath(int index) const;

  const LocalWorkerOptions options_;
  Clock& clock_;
  std::vector<Slot> slots_;
  int restarts_ = 0;
};

}  // namespace iha::cli
