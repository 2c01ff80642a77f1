// child_io.h: pipe plumbing that RunChild and LineHelper share; for them only. Nothing here blocks or raises SIGPIPE.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/file.h"

namespace iha::child_io {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// Both ends close at exec; the end the parent keeps does not block.
enum class ParentEnd { kRead, kWrite };
absl::StatusOr<Pipe> MakePipe(ParentEnd parent_end);

enum class IoResult { kProgress, kWouldBlock, kClosed };

// Appends what one read gives. kClosed: end of file or error.
IoResult ReadSome(int fd, std::string* out);
// Writes a prefix of `bytes` and removes it. kClosed: nobody reads any more.
IoResult WriteSome(int fd, std::string_view* bytes);

// Steady time, and poll() until it reaches `deadline`; 0 = time-out, EINTR is retried.
absl::Duration SteadyNow();
int PollUntil(pollfd* fds, nfds_t count, absl::Duration deadline);

}  // namespace iha::child_io
