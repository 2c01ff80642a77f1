// RunChild: one child from start to end with all its pipes served by one poll loop.
#include <signal.h>

#include <array>

#include "common/child_io.h"
#include "common/child_process.h"
#include "common/status_macros.h"

namespace iha {
namespace {

using child_io::IoResult;

// An output pipe, its text up to a cap, and whether more came.
struct Collector {
  UniqueFd fd;
  size_t cap = 0;
  std::string text = {};
  bool truncated = false;

  // Returns how many bytes came.
  size_t Take() {
    const size_t before = text.size();
    const IoResult result = child_io::ReadSome(fd.get(), &text);
    if (result == IoResult::kClosed) fd.Close();
    const size_t got = text.size() - before;
    if (text.size() > cap) {
      text.resize(cap);
      truncated = true;
    }
    return got;
  }
  // What was written before the end. A descendant that left the group may go on writing: no more than a pipe can hold.
  void Drain() {
    constexpr size_t kLargestPipe = size_t{1} << 20;
    for (size_t total = 0; fd.valid() && total < kLargestPipe;) {
      const size_t got = Take();
      if (got == 0) return;
      total += got;
    }
  }
};

// Serves the pipes until the child has ended or `deadline`; false = deadline.
bool Serve(const ChildProcess& child, UniqueFd* in, std::string_view input, Collector* out, Collector* err,
           absl::Duration deadline) {
  while (true) {
    if (input.empty()) in->Close();
    // poll ignores negative descriptors.
    std::array<pollfd, 4> fds = {pollfd{.fd = in->get(), .events = POLLOUT, .revents = 0},
                                 pollfd{.fd = out->fd.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err->fd.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = child.exit_fd(), .events = POLLIN, .revents = 0}};
    if (child_io::PollUntil(fds.data(), fds.size(), deadline) <= 0) return false;
    if (fds[0].revents != 0 && child_io::WriteSome(in->get(), &input) == IoResult::kClosed) in->Close();
    if (fds[1].revents != 0) out->Take();
    if (fds[2].revents != 0) err->Take();
    if (fds[3].revents != 0) return true;
    // A child that floods its outputs keeps poll busy: the deadline holds for it as well.
    if (child_io::SteadyNow() >= deadline) return false;
  }
}

}  // namespace

absl::StatusOr<RunResult> RunChild(const ChildOptions& options, std::string_view input, const RunLimits& limits) {
  IHA_ASSIGN_OR_RETURN(child_io::Pipe in, child_io::MakePipe(child_io::ParentEnd::kWrite));
  IHA_ASSIGN_OR_RETURN(child_io::Pipe out, child_io::MakePipe(child_io::ParentEnd::kRead));
  IHA_ASSIGN_OR_RETURN(child_io::Pipe err, child_io::MakePipe(child_io::ParentEnd::kRead));
  ChildOptions with_pipes = options;
  with_pipes.stdin_fd = in.read.get();
  with_pipes.stdout_fd = out.write.get();
  with_pipes.stderr_fd = err.write.get();
  const absl::Duration deadline = child_io::SteadyNow() + limits.timeout;
  IHA_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Spawn(with_pipes));
  in.read.Close();
  out.write.Close();
  err.write.Close();

  RunResult result;
  Collector collected_out{.fd = std::move(out.read), .cap = limits.stdout_bytes};
  Collector collected_err{.fd = std::move(err.read), .cap = limits.stderr_bytes};
  if (!Serve(child, &in.write, input, &collected_out, &collected_err, deadline)) {
    result.timed_out = true;
    child.Kill(SIGKILL);
  }
  result.exit = *child.Wait(absl::InfiniteDuration());
  collected_out.Drain();
  collected_err.Drain();
  result.out = std::move(collected_out.text);
  result.err = std::move(collected_err.text);
  result.out_truncated = collected_out.truncated;
  result.err_truncated = collected_err.truncated;
  return result;
}

}  // namespace iha
