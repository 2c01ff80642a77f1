// kv_budget.h: how much memory the KV cache gets when nobody says. Reads /proc/meminfo; thread: any.
#pragma once

#include <cstdint>

namespace iha::engine {

// A quarter of what is free now, 256 MiB to 8 GiB: the rest is for weights, scratch and other processes. 1 GiB if the
// system does not say.
int64_t DefaultKvBytes();

}  // namespace iha::engine
