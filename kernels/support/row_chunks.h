// row_chunks.h: cuts independent rows into jobs that are worth a hand-over between threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

// Calls f(row0, row1) on disjoint ranges that cover [0, rows); `row_work` is the number of elements of a row.
inline void ForRowChunks(size_t rows, size_t row_work, ParallelFor& parallel, FunctionRef<void(size_t, size_t)> f) {
  constexpr size_t kMinWork = 4096;  // elements: about a microsecond, a few times a hand-over to a thread that spins
  const size_t threads = static_cast<size_t>(parallel.Threads());
  size_t jobs = std::min({rows, threads * 4, rows * row_work / kMinWork});
  if (jobs > threads) jobs = jobs / threads * threads;  // equal shares for equally fast threads
  if (threads == 1 || jobs <= 1) {
    if (rows != 0) f(0, rows);
    return;
  }
  parallel.Run(jobs, [&](size_t j, int) { f(rows * j / jobs, rows * (j + 1) / jobs); });
}

}  // namespace iha::kernels
