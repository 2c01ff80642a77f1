// kv_budget.h: how much memory the KV cache gets when nobody says. Reads /proc and /sys/fs/cgroup; thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace iha::engine {

// A quarter of what is free now, 256 MiB to 8 GiB: the rest is for weights, scratch and other processes. 1 GiB if the
// system does not say. Free is the least of the machine's available memory and of what each memory cgroup above this
// process (v1 or v2: containers, Slurm jobs) has left, counting file pages that it could drop.
// `root`: where proc/ and sys/ lie, ending in a slash. `sharers`: processes that start together and divide the quarter.
int64_t DefaultKvBytes(const std::string& root = "/", int64_t sharers = 1);

}  // namespace iha::engine
