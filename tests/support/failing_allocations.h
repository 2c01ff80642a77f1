// failing_allocations.h: which allocation of a thread fails, for tests of what runs out of memory.
//
// failing_allocations.cc defines the program's operator new (that for aligned memory stays as it is): it belongs to the
// sources of one test program.
#pragma once

#include <cstdint>

namespace iha::testing {

// Allocations of this thread until one fails; negative: none does.
extern thread_local int64_t allocations_left;
// Whether one did in the last WithAllocations of this thread.
inline thread_local bool allocation_failed = false;

// What `work` returns where the allocation after the first `allocations` of it throws std::bad_alloc.
template <class Work>
auto WithAllocations(int64_t allocations, const Work& work) {
  allocations_left = allocations;
  auto result = work();
  allocation_failed = allocations_left < 0;
  allocations_left = -1;
  return result;
}

}  // namespace iha::testing
