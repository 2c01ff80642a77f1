#include "common/bus_error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "common/errors.h"

namespace iha {
namespace {

// Everything below runs in a signal handler: system calls and the stack only.

constexpr size_t kLineBytes = 4096 + 256;  // of /proc/self/maps: a path has at most 4096

struct Line {
  char text[kLineBytes];
  size_t size = 0;
};

// The lines of a file, one at a time; what does not fit is cut.
class Lines {
 public:
  explicit Lines(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Lines() {
    if (fd_ >= 0) close(fd_);
  }
  bool Next(Line* line) {
    line->size = 0;
    for (;;) {
      if (at_ == filled_) {
        const ssize_t got = fd_ < 0 ? 0 : read(fd_, buffer_, sizeof(buffer_));
        if (got <= 0) return line->size > 0;
        at_ = 0;
        filled_ = static_cast<size_t>(got);
      }
      const char c = buffer_[at_++];
      if (c == '\n') return true;
      if (line->size < kLineBytes) line->text[line->size++] = c;
    }
  }

 private:
  int fd_;
  char buffer_[4096];
  size_t at_ = 0, filled_ = 0;
};

// The number at `at`, which goes behind it.
uintptr_t Hexadecimal(const Line& line, size_t* at) {
  uintptr_t value = 0;
  for (; *at < line.size; ++*at) {
    const char c = line.text[*at];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    value = value * 16 + static_cast<uintptr_t>(digit);
  }
  return value;
}

// Finds the line "begin-end perms offset device inode   /path" around `address`; where its path begins, 0 if none.
size_t FindMapping(uintptr_t address, Line* line) {
  Lines lines("/proc/self/maps");
  while (lines.Next(line)) {
    size_t at = 0;
    const uintptr_t begin = Hexadecimal(*line, &at);
    ++at;  // '-'
    const uintptr_t end = Hexadecimal(*line, &at);
    if (address < begin || address >= end) continue;
    const void* path = memchr(line->text, '/', line->size);
    return path == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(path) - line->text);
  }
  return 0;
}

void Write(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDERR_FILENO, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

void OnBusError(int signal_number, siginfo_t* info, void*) {
  Line line;
  const size_t path = info->si_code == BUS_ADRERR ? FindMapping(reinterpret_cast<uintptr_t>(info->si_addr), &line) : 0;
  if (path == 0) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    return;
  }
  for (size_t i = path; i < line.size; ++i) {
    if (static_cast<unsigned char>(line.text[i]) < ' ' || line.text[i] == '\x7f') line.text[i] = '?';
  }
  constexpr char kMessage[] =
      ": lost bytes while it was read: truncated meanwhile, or its disk fails; run again with a whole file that "
      "nothing writes to\n";
  Write(program_invocation_short_name, strlen(program_invocation_short_name));
  Write(": ", 2);
  Write(line.text + path, line.size - path);
  Write(kMessage, sizeof(kMessage) - 1);
  _exit(kExitBadInput);
}

}  // namespace

void ExplainBusErrors() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace iha
