#include "common/child_io.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>

namespace iha::child_io {

absl::StatusOr<Pipe> MakePipe(ParentEnd parent_end) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus("pipe", "create", errno);
  Pipe made{.read = UniqueFd(fds[0]), .write = UniqueFd(fds[1])};
  const int ours = parent_end == ParentEnd::kRead ? fds[0] : fds[1];
  if (fcntl(ours, F_SETFL, fcntl(ours, F_GETFL) | O_NONBLOCK) != 0) return ErrnoStatus("pipe", "set flags", errno);
  return made;
}

IoResult ReadSome(int fd, std::string* out) {
  char block[1 << 16];
  const ssize_t n = read(fd, block, sizeof block);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return IoResult::kWouldBlock;
  if (n <= 0) return IoResult::kClosed;
  out->append(block, static_cast<size_t>(n));
  return IoResult::kProgress;
}

IoResult WriteSome(int fd, std::string_view* bytes) {
  // A reader that has gone raises SIGPIPE in this thread: hold it back, and take it from the queue if we caused it.
  sigset_t sigpipe, old, pending;
  sigemptyset(&sigpipe);
  sigaddset(&sigpipe, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
  const ssize_t n = write(fd, bytes->data(), bytes->size());
  const int error = n < 0 ? errno : 0;
  if (error == EPIPE && !was_pending) {
    const timespec now = {};
    while (sigtimedwait(&sigpipe, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (error == EAGAIN || error == EINTR) return IoResult::kWouldBlock;
  if (error != 0) return IoResult::kClosed;
  bytes->remove_prefix(static_cast<size_t>(n));
  return IoResult::kProgress;
}

absl::Duration SteadyNow() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

int PollUntil(pollfd* fds, nfds_t count, absl::Duration deadline) {
  while (true) {
    const absl::Duration left = std::max(deadline - SteadyNow(), absl::ZeroDuration());
    // Rounded up, so that a wait never ends before its deadline; poll takes at most INT_MAX ms, the loop waits on.
    const absl::Duration leg = std::min(absl::Ceil(left, absl::Milliseconds(1)), absl::Milliseconds(INT_MAX));
    const int ready = poll(fds, count, static_cast<int>(absl::ToInt64Milliseconds(leg)));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return ready;
    if (SteadyNow() >= deadline) return 0;
  }
}

}  // namespace iha::child_io
