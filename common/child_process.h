// child_process.h: the one way to start another program (helpers, sandboxes, workers, gnuplot). No shell, ever.
//
// The child gets exactly: the argv and environment given, descriptors 0 to 2 and keep_fds, default signal handlers, an
// empty signal mask. It gets nothing else of the parent: every other descriptor closes at exec, whoever opened it.
// Time-outs follow the steady clock: they bound an attempt and never decide a verdict by themselves.
// Thread: any thread may start children; an object belongs to one thread. Blocking as stated. Errors: NotFound (no such
// program), InvalidArgument (bad options), FailedPrecondition (no permission), Unavailable (out of processes, memory).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/file.h"

namespace iha {

struct ChildLimit {
  int resource = 0;    // RLIMIT_*
  uint64_t value = 0;  // soft and hard
};

struct ChildOptions {
  // argv[0] with a slash is a path (relative to the parent's folder), else it is looked up in PATH of `env`.
  std::vector<std::string> argv;
  std::vector<std::string> env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"};
  std::string cwd;  // "" = the parent's
  // What becomes descriptors 0, 1, 2 (stay owned by the caller); -1 = /dev/null. RunChild and LineHelper set pipes.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> keep_fds;  // >= 3, open in the child under the same number
  std::vector<ChildLimit> limits;
  // A process group of its own: Kill reaches the grandchildren, a terminal's Ctrl-C doesn't reach the child. false for
  // a program that shares the terminal (reads from it).
  bool own_group = true;
  // SIGKILL when the thread that started it ends, however the parent dies: start long-lived children from a thread
  // that outlives them (main).
  bool die_with_parent = true;
};

struct ExitState {
  int code = 0;    // exit code, if signal is 0
  int signal = 0;  // that ended it
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exit code 3", "signal 9 (Killed)"
};

// A running child. Move-only; destruction kills it (and its group) and reaps it.
class ChildProcess {
 public:
  // Returns when the program has been executed or could not be.
  static absl::StatusOr<ChildProcess> Spawn(const ChildOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // Readable (poll) once the child has ended.
  int exit_fd() const { return pidfd_.get(); }
  // Waits for the end, at most `timeout` (zero = look, infinite = for good); nullopt = still running. At the end what
  // is left of its own group is killed, so no descendant outlives it but those that made a session of their own.
  std::optional<ExitState> Wait(absl::Duration timeout);
  // Sends a signal to the group (or the process, without own_group) unless the child has been seen to end.
  void Kill(int signal);

 private:
  ChildProcess() = default;
  void End();

  pid_t pid_ = -1;  // -1: moved from
  UniqueFd pidfd_;
  bool own_group_ = true;
  std::optional<ExitState> exit_;
};

struct RunLimits {
  absl::Duration timeout = absl::InfiniteDuration();  // then SIGKILL to the group
  size_t stdout_bytes = size_t{1} << 20;              // what comes after is read and dropped
  size_t stderr_bytes = size_t{1} << 16;
};

struct RunResult {
  ExitState exit;
  bool timed_out = false;
  std::string out;
  std::string err;
  bool out_truncated = false;
  bool err_truncated = false;
};

// Starts a child, feeds it `input`, collects both outputs and waits for its end. Its exit code is a result, not an
// error. A child that ends without reading all of its input is no error either.
absl::StatusOr<RunResult> RunChild(const ChildOptions& options, std::string_view input, const RunLimits& limits);

}  // namespace iha
