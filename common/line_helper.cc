#include "common/line_helper.h"

#include <signal.h>

#include <algorithm>
#include <array>

#include "common/child_io.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha {

using child_io::IoResult;

absl::StatusOr<std::unique_ptr<LineHelper>> LineHelper::Start(const ChildOptions& options, size_t max_line_bytes) {
  IHA_ASSIGN_OR_RETURN(child_io::Pipe in, child_io::MakePipe(child_io::ParentEnd::kWrite));
  IHA_ASSIGN_OR_RETURN(child_io::Pipe out, child_io::MakePipe(child_io::ParentEnd::kRead));
  IHA_ASSIGN_OR_RETURN(child_io::Pipe err, child_io::MakePipe(child_io::ParentEnd::kRead));
  ChildOptions with_pipes = options;
  with_pipes.stdin_fd = in.read.get();
  with_pipes.stdout_fd = out.write.get();
  with_pipes.stderr_fd = err.write.get();
  IHA_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Spawn(with_pipes));
  std::unique_ptr<LineHelper> helper(new LineHelper(std::move(child), options.argv[0], max_line_bytes));
  helper->in_ = std::move(in.write);
  helper->out_ = std::move(out.read);
  helper->err_ = std::move(err.read);
  return helper;
}

absl::Status LineHelper::Lost(absl::Status why) {
  alive_ = false;
  child_.Kill(SIGKILL);
  child_.Wait(absl::InfiniteDuration());
  in_.Close();
  out_.Close();
  err_.Close();
  return why;
}

// The child closed its stdout or stdin: wait a moment for its end, which says more than the closed pipe.
absl::Status LineHelper::Ended() {
  constexpr absl::Duration kGrace = absl::Seconds(2);
  const std::optional<ExitState> exit = child_.Wait(kGrace);
  ReadStderr();
  const std::string how = exit.has_value() ? exit->ToString() : "its output closed";
  constexpr size_t kShown = 300;
  std::string_view tail = stderr_tail_;
  tail = tail.substr(0, tail.find_last_not_of(" \r\n") + 1);
  const std::string words = TerminalSafe(tail.substr(tail.size() - std::min(tail.size(), kShown)));
  return Lost(Unavailable("helper {} ended ({}){}{}", program_, how, words.empty() ? "" : ": ", words));
}

void LineHelper::ReadStderr() {
  constexpr size_t kTail = 4096;
  const IoResult result = child_io::ReadSome(err_.get(), &stderr_tail_);
  if (stderr_tail_.size() > kTail) stderr_tail_.erase(0, stderr_tail_.size() - kTail);
  if (result == IoResult::kClosed) err_.Close();
}

// Runs the pipes until *to_write is empty (if not null) or a line is there (if null).
absl::Status LineHelper::Pump(std::string_view* to_write, absl::Duration deadline) {
  if (!alive_) return Unavailable("helper {} has ended", program_);
  while (to_write != nullptr ? !to_write->empty() : !HasLine()) {
    // stdout is read up to one whole line ahead, so that a child that talks too much waits instead of filling memory.
    std::array<pollfd, 3> fds = {pollfd{.fd = to_write != nullptr ? in_.get() : -1, .events = POLLOUT, .revents = 0},
                                 pollfd{.fd = HasLine() ? -1 : out_.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err_.get(), .events = POLLIN, .revents = 0}};
    if (child_io::PollUntil(fds.data(), fds.size(), deadline) <= 0 || child_io::SteadyNow() > deadline) {
      return Lost(DeadlineExceeded("helper {}: no answer in time; it was stopped", program_));
    }
    if (fds[2].revents != 0) ReadStderr();
    if (fds[1].revents != 0) {
      const size_t before = buffer_.size();
      if (child_io::ReadSome(out_.get(), &buffer_) == IoResult::kClosed) return Ended();
      newline_ = buffer_.find('\n', before);
      if ((HasLine() ? newline_ : buffer_.size()) > max_line_bytes_) {
        return Lost(
            DataLoss("helper {}: wrote a line of more than {} bytes; it was stopped", program_, max_line_bytes_));
      }
    }
    if (fds[0].revents != 0 && child_io::WriteSome(in_.get(), to_write) == IoResult::kClosed) return Ended();
  }
  return absl::OkStatus();
}

absl::Status LineHelper::WriteLine(std::string_view line, absl::Duration timeout) {
  if (line.find('\n') != std::string_view::npos) {
    return InvalidArgument("helper {}: a question must be one line", program_);
  }
  const std::string bytes = std::string(line) + "\n";
  std::string_view left = bytes;
  return Pump(&left, child_io::SteadyNow() + timeout);
}

absl::StatusOr<std::string> LineHelper::ReadLine(absl::Duration timeout) {
  IHA_RETURN_IF_ERROR(Pump(nullptr, child_io::SteadyNow() + timeout));
  std::string line = buffer_.substr(0, newline_);
  buffer_.erase(0, newline_ + 1);
  newline_ = buffer_.find('\n');
  return line;
}

absl::StatusOr<std::string> LineHelper::Exchange(std::string_view line, absl::Duration timeout) {
  const absl::Duration deadline = child_io::SteadyNow() + timeout;
  IHA_RETURN_IF_ERROR(WriteLine(line, timeout));
  return ReadLine(deadline - child_io::SteadyNow());
}

}  // namespace iha
