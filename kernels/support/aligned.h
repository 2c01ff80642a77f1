// aligned.h: page-aligned storage for packed weights, cache blocks and scratch. Contents start uninitialised.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace iha::kernels {

struct AlignedFree {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedFree>;

// Room for n elements (whole pages); throws std::bad_alloc when there is none. Large arrays ask for huge pages: matmul
// walks several panels of a matrix side by side, one page translation each.
template <class T>
AlignedArray<T> MakeAligned(size_t n) {
  constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;
  const size_t page = n * sizeof(T) >= 2 * kHugePage ? kHugePage : kPage;
  const size_t bytes = (n * sizeof(T) + page) / page * page;
  void* p = std::aligned_alloc(page, bytes);
  if (p == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (page == kHugePage) madvise(p, bytes, MADV_HUGEPAGE);  // a hint: refused by kernels built without it
#endif
  return AlignedArray<T>(static_cast<T*>(p));
}

}  // namespace iha::kernels
