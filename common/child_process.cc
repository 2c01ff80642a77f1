#include "common/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/child_io.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha {
namespace {

enum class Stage : int { kStdio, kDescriptors, kFolder, kLimit, kExec };

struct ChildFailure {
  Stage stage;
  int error;
};

// All that the child needs between vfork and exec, made beforehand: there it may only make system calls.
struct Launch {
  const ChildOptions* options = nullptr;
  const char* path = nullptr;
  std::vector<char*> argv;
  std::vector<char*> env;
  int stdio[3] = {-1, -1, -1};  // none is -1
  int failure_fd = -1;          // >= 3
  int open_max = 0;
  pid_t parent = 0;
};

[[noreturn]] void Fail(const Launch& launch, Stage stage) {
  const ChildFailure failure{stage, errno};
  [[maybe_unused]] const ssize_t ignored = write(launch.failure_fd, &failure, sizeof failure);
  _exit(127);
}

void CloseAtExec(const Launch& launch) {
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  // Kernels before 5.11.
  for (int fd = 3; fd < launch.open_max; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void ExecChild(const Launch& launch) {
  const ChildOptions& options = *launch.options;
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; signal++) sigaction(signal, &by_default, nullptr);
  if (options.own_group) setpgid(0, 0);
  if (options.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch.parent) _exit(127);  // it died before the line above
  }
  // Out of the way first: a source may be one of 0, 1, 2 itself.
  int moved[3];
  for (int i = 0; i < 3; i++) {
    moved[i] = fcntl(launch.stdio[i], F_DUPFD, 3);
    if (moved[i] < 0) Fail(launch, Stage::kStdio);
  }
  for (int i = 0; i < 3; i++) {
    if (dup2(moved[i], i) < 0) Fail(launch, Stage::kStdio);
  }
  CloseAtExec(launch);
  for (const int fd : options.keep_fds) {
    if (fcntl(fd, F_SETFD, 0) != 0) Fail(launch, Stage::kDescriptors);
  }
  if (!options.cwd.empty() && chdir(options.cwd.c_str()) != 0) Fail(launch, Stage::kFolder);
  for (const ChildLimit& limit : options.limits) {
    const rlimit value = {limit.value, limit.value};
    if (setrlimit(static_cast<__rlimit_resource>(limit.resource), &value) != 0) Fail(launch, Stage::kLimit);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(launch.path, launch.argv.data(), launch.env.data());
  Fail(launch, Stage::kExec);
}

// vfork: a worker with many GB mapped would pay for copying its page tables at each start. This thread stands still
// until the exec, so the shared memory is not touched by two.
pid_t VforkExec(const Launch& launch) {
  const pid_t pid = vfork();
  if (pid == 0) ExecChild(launch);
  return pid;
}

absl::Status CheckOptions(const ChildOptions& options) {
  if (options.argv.empty() || options.argv[0].empty()) return InvalidArgument("child process: no program given");
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (std::any_of(options.argv.begin(), options.argv.end(), has_nul) || has_nul(options.cwd) ||
      std::any_of(options.env.begin(), options.env.end(), has_nul)) {
    return InvalidArgument("{}: argument, environment or folder with a NUL byte", options.argv[0]);
  }
  for (const int fd : options.keep_fds) {
    if (fd < 3) return InvalidArgument("{}: keep_fds has {}, expected 3 or more", options.argv[0], fd);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FindProgram(const ChildOptions& options) {
  const std::string& name = options.argv[0];
  if (name.find('/') != std::string::npos) return name;
  constexpr std::string_view kPath = "PATH=";
  for (const std::string& variable : options.env) {
    if (variable.compare(0, kPath.size(), kPath) != 0) continue;
    for (size_t begin = kPath.size(); begin <= variable.size();) {
      const size_t end = std::min(variable.find(':', begin), variable.size());
      const std::string candidate = variable.substr(begin, end - begin) + "/" + name;
      if (end > begin && access(candidate.c_str(), X_OK) == 0) return candidate;
      begin = end + 1;
    }
    return NotFound("{}: no such program in {}; install it", name, variable);
  }
  return NotFound("{}: no such program: the child's environment has no PATH", name);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status Explain(const ChildFailure& failure, const ChildOptions& options, const std::string& path) {
  switch (failure.stage) {
    case Stage::kStdio:
      return ErrnoStatus(path, "pass descriptors 0 to 2", failure.error);
    case Stage::kDescriptors:
      return ErrnoStatus(path, "pass keep_fds", failure.error);
    case Stage::kFolder:
      return ErrnoStatus(options.cwd, fmt::format("enter the folder to start {} in", path), failure.error);
    case Stage::kLimit:
      return ErrnoStatus(path, "set a resource limit", failure.error);
    case Stage::kExec:
      break;
  }
  if (failure.error == ENOEXEC) return InvalidArgument("{}: is not a program", path);
  return ErrnoStatus(path, "start", failure.error);
}

}  // namespace

std::string ExitState::ToString() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, sigdescr_np(signal) ? sigdescr_np(signal) : "unknown");
  return fmt::format("exit code {}", code);
}

absl::StatusOr<ChildProcess> ChildProcess::Spawn(const ChildOptions& options) {
  IHA_RETURN_IF_ERROR(CheckOptions(options));
  IHA_ASSIGN_OR_RETURN(const std::string path, FindProgram(options));
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return ErrnoStatus("/dev/null", "open", errno);
  int failure_pipe[2];
  if (pipe2(failure_pipe, O_CLOEXEC) != 0) return ErrnoStatus("pipe", "create", errno);
  const UniqueFd failure_read(failure_pipe[0]);
  UniqueFd failure_raw(failure_pipe[1]);
  // Away from 0 to 2, which the child overwrites; a parent without stdio could have been given one of those.
  UniqueFd failure_write(fcntl(failure_raw.get(), F_DUPFD_CLOEXEC, 3));
  if (!failure_write.valid()) return ErrnoStatus("pipe", "create", errno);

  Launch launch;
  launch.options = &options;
  launch.path = path.c_str();
  launch.argv = Pointers(options.argv);
  launch.env = Pointers(options.env);
  const int given[3] = {options.stdin_fd, options.stdout_fd, options.stderr_fd};
  for (int i = 0; i < 3; i++) launch.stdio[i] = given[i] < 0 ? null.get() : given[i];
  launch.failure_fd = failure_write.get();
  launch.open_max = static_cast<int>(sysconf(_SC_OPEN_MAX));
  launch.parent = getpid();

  // No handler of ours may run in the child, which shares our memory until the exec.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t pid = VforkExec(launch);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (pid < 0) return ErrnoStatus(path, "start a process", fork_error);

  ChildProcess child;
  child.pid_ = pid;
  child.own_group_ = options.own_group;
  child.pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const int pidfd_error = errno;
  failure_raw.Close();
  failure_write.Close();
  ChildFailure failure = {};
  ssize_t n = 0;
  do n = read(failure_read.get(), &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n == sizeof failure) {
    child.End();
    return Explain(failure, options, path);
  }
  if (!child.pidfd_.valid()) {
    child.Kill(SIGKILL);
    child.End();
    return ErrnoStatus(path, "watch the process", pidfd_error);
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      own_group_(other.own_group_),
      exit_(std::exchange(other.exit_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  ChildProcess old(std::move(*this));  // killed and reaped at the end of this call
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  own_group_ = other.own_group_;
  exit_ = std::exchange(other.exit_, std::nullopt);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exit_.has_value()) return;
  Kill(SIGKILL);
  End();
}

void ChildProcess::End() {
  // The leader is a zombie or about to be: its id, and with it the group's, cannot be given to others until waitpid.
  int status = 0;
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  if (own_group_) kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_ = WIFSIGNALED(status) ? ExitState{.signal = WTERMSIG(status)} : ExitState{.code = WEXITSTATUS(status)};
}

std::optional<ExitState> ChildProcess::Wait(absl::Duration timeout) {
  if (exit_.has_value()) return exit_;
  pollfd ended = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  if (child_io::PollUntil(&ended, 1, child_io::SteadyNow() + timeout) <= 0) return std::nullopt;
  End();
  return exit_;
}

void ChildProcess::Kill(int signal) {
  if (pid_ < 0 || exit_.has_value()) return;
  kill(own_group_ ? -pid_ : pid_, signal);
}

}  // namespace iha
