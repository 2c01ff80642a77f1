// line_helper.h: a long-lived child that answers one line for each line (chat templates, SymPy).
//
// The child's stdin and stdout carry lines ended by \n; its stderr is read all the time and its tail kept for messages.
// Blocking up to the time-out of each call (steady clock). Thread: belongs to one thread, and must be started by a
// thread that outlives it (see ChildOptions::die_with_parent). After any error but InvalidArgument the child is killed
// and every later call gives Unavailable: start a new one. Errors: Unavailable (it ended, with its exit and last
// words), DeadlineExceeded, DataLoss (a line over the limit).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/child_process.h"

namespace iha {

class LineHelper {
 public:
  static constexpr size_t kDefaultMaxLine = size_t{64} << 20;

  // Ignores stdin_fd, stdout_fd and stderr_fd of `options`.
  static absl::StatusOr<std::unique_ptr<LineHelper>> Start(const ChildOptions& options,
                                                           size_t max_line_bytes = kDefaultMaxLine);

  // InvalidArgument if `line` holds a \n. Reads what the child says meanwhile, so neither side can block the other.
  absl::Status WriteLine(std::string_view line, absl::Duration timeout);
  // The next line, without its \n.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);
  // One question, one answer, both within `timeout`.
  absl::StatusOr<std::string> Exchange(std::string_view line, absl::Duration timeout);

  bool alive() const { return alive_; }
  pid_t pid() const { return child_.pid(); }
  // The last 4 KiB that it wrote to stderr; untrusted.
  const std::string& stderr_tail() const { return stderr_tail_; }

 private:
  LineHelper(ChildProcess child, std::string program, size_t max_line_bytes)
      : child_(std::move(child)), program_(std::move(program)), max_line_bytes_(max_line_bytes) {}

  absl::Status Pump(std::string_view* to_write, absl::Duration deadline);
  void ReadStderr();
  absl::Status Lost(absl::Status why);
  absl::Status Ended();
  bool HasLine() const { return newline_ != std::string::npos; }

  ChildProcess child_;
  const std::string program_;
  const size_t max_line_bytes_;
  UniqueFd in_, out_, err_;
  std::string buffer_;                  // read from stdout, not yet handed out
  size_t newline_ = std::string::npos;  // position of the first \n in buffer_
  std::string stderr_tail_;
  bool alive_ = true;
};

}  // namespace iha
