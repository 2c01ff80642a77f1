// filter.h: the system calls that a candidate may make, as a program for seccomp.
//
// An allow list: what a Python interpreter needs to compute, to write below its private folders and to start threads
// and children within its namespaces. All else fails with EPERM (clone3 with ENOSYS, so that libc falls back to clone):
// no exec, no sockets but unnamed pairs, no new namespaces or mounts, no ptrace, no memory of other processes, no
// memory that no limit counts (memfd, System V), no keys, bpf, perf, io_uring. Pure; thread-safe.
// Errors: Internal, libseccomp's own.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace iha::sandbox {

// An array of struct sock_filter for this machine's architecture.
absl::StatusOr<std::string> CandidateFilter();

}  // namespace iha::sandbox
