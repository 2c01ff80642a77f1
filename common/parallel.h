// parallel.h: a function called for each of many indices, some of them at the same time.
//
// For work that waits for others (child processes); kernels have their own pool. Returns when all calls have. `work`
// must be safe to call from several threads and must not throw. Blocking; thread: any.
#pragma once

#include <cstddef>
#include <functional>

namespace iha {

// work(0) to work(count - 1), begun in this order, at most `width` at a time (at least 1; then on this thread).
void InParallel(size_t count, size_t width, const std::function<void(size_t)>& work);

}  // namespace iha
