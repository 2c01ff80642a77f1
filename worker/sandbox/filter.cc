#include "worker/sandbox/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"

namespace iha::sandbox {
namespace {

// By name, as some exist on one architecture only.
constexpr const char* kAllowed[] = {
    // Memory and threads.
    "brk", "munmap", "mremap", "mprotect", "membarrier", "futex", "futex_waitv", "set_robust_list", "get_robust_list",
    "set_tid_address", "rseq", "arch_prctl", "gettid", "exit", "exit_group", "fork", "vfork", "wait4", "waitid",
    "sched_yield", "sched_getaffinity", "getpriority", "restart_syscall",
    // Time and signals.
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "alarm",
    "setitimer", "getitimer", "pause", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
    "rt_sigtimedwait", "rt_sigsuspend", "sigaltstack", "kill", "tgkill", "tkill",
    // Files: the root is read-only, the private folders are small.
    "read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev", "open", "openat", "close",
    "close_range", "creat", "lseek", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access",
    "faccessat", "faccessat2", "getdents", "getdents64", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir",
    "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "readlink",
    "readlinkat", "truncate", "ftruncate", "fallocate", "fsync", "fdatasync", "chmod", "fchmod", "fchmodat",
    "utimensat", "umask", "dup", "dup2", "dup3", "pipe", "pipe2", "sendfile", "copy_file_range", "fadvise64",
    // Waiting; unnamed pairs, which event loops use (without messages that carry descriptors: those have no limit).
    "select", "pselect6", "poll", "ppoll", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
    "eventfd2", "socketpair", "sendto", "recvfrom", "shutdown", "getsockopt", "getsockname", "getpeername",
    // Who am I; limits, which can only be lowered. Nothing that tells what else goes on on this machine.
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "getpgid",
    "getpgrp", "getsid", "setsid", "setpgid", "getrlimit", "setrlimit", "getrusage", "uname", "getrandom", "capget"};

constexpr uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                    CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | 0x80 /* CLONE_NEWTIME */;

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};

absl::Status Failed(const char* what, int error) {
  return Internal("system call filter: {}: {}", what, std::strerror(-error));
}

absl::Status Allow(scmp_filter_ctx filter, const char* name, const scmp_arg_cmp* condition = nullptr) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return absl::OkStatus();  // this libseccomp has not heard of it: stays refused
  const int error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, condition == nullptr ? 0 : 1, condition);
  return error == 0 ? absl::OkStatus() : Failed(name, error);
}

absl::Status AddRules(scmp_filter_ctx filter) {
  for (const char* name : kAllowed) IHA_RETURN_IF_ERROR(Allow(filter, name));
  // Shared memory of no file would stay when no process has it in memory, where no limit counts it; nor does one count
  // huge pages of the machine's pool.
  for (const uint64_t flag : {uint64_t{MAP_SHARED | MAP_HUGETLB}, uint64_t{MAP_ANONYMOUS | MAP_HUGETLB}}) {
    const scmp_arg_cmp without = SCMP_A3(SCMP_CMP_MASKED_EQ, flag, 0);
    IHA_RETURN_IF_ERROR(Allow(filter, "mmap", &without));
  }
  // Nothing that moves memory to where it is not counted.
  for (const uint64_t advice :
       {uint64_t{MADV_NORMAL}, uint64_t{MADV_RANDOM}, uint64_t{MADV_SEQUENTIAL}, uint64_t{MADV_WILLNEED},
        uint64_t{MADV_DONTNEED}, uint64_t{MADV_FREE}, uint64_t{MADV_HUGEPAGE}, uint64_t{MADV_NOHUGEPAGE}}) {
    const scmp_arg_cmp only = SCMP_A2(SCMP_CMP_EQ, advice);
    IHA_RETURN_IF_ERROR(Allow(filter, "madvise", &only));
  }
  // No locks: on files that all samples see they would pass messages between them.
  for (const uint64_t command : {uint64_t{F_DUPFD}, uint64_t{F_GETFD}, uint64_t{F_SETFD}, uint64_t{F_GETFL},
                                 uint64_t{F_SETFL}, uint64_t{F_DUPFD_CLOEXEC}, uint64_t{F_GETPIPE_SZ}}) {
    const scmp_arg_cmp only = SCMP_A1(SCMP_CMP_EQ, command);
    IHA_RETURN_IF_ERROR(Allow(filter, "fcntl", &only));
  }
  const scmp_arg_cmp no_namespaces = SCMP_A0(SCMP_CMP_MASKED_EQ, kNewNamespaces, 0);
  IHA_RETURN_IF_ERROR(Allow(filter, "clone", &no_namespaces));
  for (const uint64_t request :
       {uint64_t{TCGETS}, uint64_t{FIONREAD}, uint64_t{FIOCLEX}, uint64_t{FIONBIO}, uint64_t{TIOCGWINSZ}}) {
    const scmp_arg_cmp only = SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, request);
    IHA_RETURN_IF_ERROR(Allow(filter, "ioctl", &only));
  }
  // Reading a limit only; setrlimit above can't raise a hard one.
  const scmp_arg_cmp reads = SCMP_A2(SCMP_CMP_EQ, 0);
  IHA_RETURN_IF_ERROR(Allow(filter, "prlimit64", &reads));
  for (const uint64_t option : {uint64_t{15}, uint64_t{16}}) {  // PR_SET_NAME, PR_GET_NAME
    const scmp_arg_cmp only = SCMP_A0(SCMP_CMP_EQ, option);
    IHA_RETURN_IF_ERROR(Allow(filter, "prctl", &only));
  }
  const int error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  return error == 0 ? absl::OkStatus() : Failed("clone3", error);
}

}  // namespace

absl::StatusOr<std::string> CandidateFilter() {
  const std::unique_ptr<void, Release> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (filter == nullptr) return Internal("system call filter: libseccomp gave none");
  IHA_RETURN_IF_ERROR(AddRules(filter.get()));
  const UniqueFd file(memfd_create("filter", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("system call filter", "memfd_create", errno);
  if (const int error = seccomp_export_bpf(filter.get(), file.get()); error != 0) return Failed("export", error);
  std::string program(static_cast<size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  if (pread(file.get(), program.data(), program.size(), 0) != static_cast<ssize_t>(program.size())) {
    return ErrnoStatus("system call filter", "read", errno);
  }
  return program;
}

}  // namespace iha::sandbox
