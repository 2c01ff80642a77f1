// kv_budget.h: how much memory the KV cache gets when nobody says. Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace iha::engine {

// Of the host's memory (reads /proc and /sys/fs/cgroup): a quarter of what is free now, 256 MiB to 8 GiB: the rest is
// for weights, scratch and other processes. 1 GiB if the system does not say. Free is the least of the machine's
// available memory and of what each memory cgroup above this process (v1 or v2: containers, Slurm jobs) has left,
// counting file pages that it could drop. `root`: where proc/ and sys/ lie, ending in a slash. `sharers`: processes
// that start together and divide the quarter.
int64_t DefaultKvBytes(const std::string& root = "/", int64_t sharers = 1);

// The same where the cache lies on a device that has `free` bytes left beside the weights: a quarter, 256 MiB at least.
// Nothing else wants them, so there is no upper end.
int64_t DeviceKvBytes(int64_t free, int64_t sharers = 1);

}  // namespace iha::engine
