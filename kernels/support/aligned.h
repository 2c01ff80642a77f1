// aligned.h: page-aligned storage for packed weights, cache blocks and scratch. Contents start uninitialised.
#pragma once

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

// Room for n elements (whole pages); throws std::bad_alloc when there is none.
template <class T>
AlignedArray<T> MakeAligned(size_t n) {
  constexpr size_t kPage = 4096;
  const size_t bytes = (n * sizeof(T) + kPage) / kPage * kPage;
  void* p = std::aligned_alloc(kPage, bytes);
  if (p == nullptr) throw std::bad_alloc();
  return AlignedArray<T>(static_cast<T*>(p));
}

}  // namespace iha::kernels
