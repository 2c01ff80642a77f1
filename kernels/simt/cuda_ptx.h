// cuda_ptx.h: the functions of ptx.h on the device, as CUDA built-ins and inline PTX. Included by nvcc only.
#pragma once

#define IHA_KERNEL __global__
#define IHA_DEVICE __device__ __forceinline__
#define IHA_UNROLL _Pragma("unroll")
#define IHA_UNROLL_BY_TWO _Pragma("unroll 2")
#define IHA_UNROLL_NEVER _Pragma("unroll 1")
#define IHA_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)

namespace iha::kernels::ptx {

IHA_DEVICE uint32_t ThreadX() { return threadIdx.x; }
IHA_DEVICE uint32_t ThreadY() { return threadIdx.y; }
IHA_DEVICE uint32_t ThreadZ() { return threadIdx.z; }
IHA_DEVICE uint32_t BlockX() { return blockIdx.x; }
IHA_DEVICE uint32_t BlockY() { return blockIdx.y; }
IHA_DEVICE uint32_t BlockZ() { return blockIdx.z; }
IHA_DEVICE uint32_t GridX() { return gridDim.x; }
IHA_DEVICE uint32_t GridY() { return gridDim.y; }
IHA_DEVICE uint32_t GridZ() { return gridDim.z; }
IHA_DEVICE uint32_t BlockDimX() { return blockDim.x; }
IHA_DEVICE uint32_t BlockDimY() { return blockDim.y; }
IHA_DEVICE uint32_t BlockDimZ() { return blockDim.z; }
IHA_DEVICE uint32_t Lane() {
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
IHA_DEVICE uint32_t WarpIndex() { return threadIdx.x / 32; }

template <class T>
using Global = T*;
template <class T>
using Shared = T*;
template <class T>
struct Identity {
  using type = T;
};
template <class T>
struct Value {
  using type = T;
};
template <class T>
struct Value<const T> {
  using type = T;
};

extern __shared__ __align__(1024) unsigned char dynamic_shared[];
template <class T>
IHA_DEVICE T* DynamicShared(size_t byte_offset = 0) {
  return reinterpret_cast<T*>(dynamic_shared + byte_offset);
}
template <class V, class T>
IHA_DEVICE V LoadAs(T* p) {
  return *reinterpret_cast<const V*>(p);
}
template <class V, class T>
IHA_DEVICE void StoreAs(T* p, const V& value) {
  *reinterpret_cast<V*>(p) = value;
}
template <class T>
IHA_DEVICE typename Value<T>::type Load(T* p) {
  return *p;
}
template <class T>
IHA_DEVICE void Store(T* p, typename Identity<T>::type value) {
  *p = value;
}
template <class T>
IHA_DEVICE T AtomicAdd(T* p, typename Identity<T>::type v) {
  return atomicAdd(p, v);
}
template <class T>
IHA_DEVICE T AtomicMax(T* p, typename Identity<T>::type v) {
  return atomicMax(p, v);
}
template <class T>
IHA_DEVICE T AtomicMin(T* p, typename Identity<T>::type v) {
  return atomicMin(p, v);
}
template <class T>
IHA_DEVICE T AtomicExch(T* p, typename Identity<T>::type v) {
  return atomicExch(p, v);
}
template <class T>
IHA_DEVICE T AtomicCas(T* p, typename Identity<T>::type expected, typename Identity<T>::type v) {
  return atomicCAS(p, expected, v);
}

IHA_DEVICE void SyncThreads() { __syncthreads(); }
IHA_DEVICE uint32_t SyncThreadsCount(bool p) { return static_cast<uint32_t>(__syncthreads_count(p)); }
IHA_DEVICE bool SyncThreadsOr(bool p) { return __syncthreads_or(p) != 0; }
IHA_DEVICE bool SyncThreadsAnd(bool p) { return __syncthreads_and(p) != 0; }
IHA_DEVICE void BarSync(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
IHA_DEVICE void BarArrive(uint32_t id, uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
IHA_DEVICE void SyncWarp(uint32_t mask = kAllLanes) { __syncwarp(mask); }
template <class V>
IHA_DEVICE V ShflXor(uint32_t mask, V v, uint32_t n, uint32_t width = 32) {
  return __shfl_xor_sync(mask, v, static_cast<int>(n), static_cast<int>(width));
}
template <class V>
IHA_DEVICE V ShflUp(uint32_t mask, V v, uint32_t n, uint32_t width = 32) {
  return __shfl_up_sync(mask, v, n, static_cast<int>(width));
}
template <class V>
IHA_DEVICE V ShflDown(uint32_t mask, V v, uint32_t n, uint32_t width = 32) {
  return __shfl_down_sync(mask, v, n, static_cast<int>(width));
}
template <class V>
IHA_DEVICE V ShflIdx(uint32_t mask, V v, uint32_t n, uint32_t width = 32) {
  return __shfl_sync(mask, v, static_cast<int>(n), static_cast<int>(width));
}
IHA_DEVICE uint32_t Ballot(uint32_t mask, bool p) { return __ballot_sync(mask, p); }
IHA_DEVICE bool Any(uint32_t mask, bool p) { return __any_sync(mask, p) != 0; }
IHA_DEVICE bool All(uint32_t mask, bool p) { return __all_sync(mask, p) != 0; }
template <class V>
IHA_DEVICE uint32_t MatchAny(uint32_t mask, V v) {
  return __match_any_sync(mask, v);
}
template <class V>
IHA_DEVICE uint32_t MatchAll(uint32_t mask, V v) {
  int all;
  return __match_all_sync(mask, v, &all);
}
template <class V>
IHA_DEVICE V ReduceAdd(uint32_t mask, V v) {
  return __reduce_add_sync(mask, v);
}
template <class V>
IHA_DEVICE V ReduceMin(uint32_t mask, V v) {
  return __reduce_min_sync(mask, v);
}
template <class V>
IHA_DEVICE V ReduceMax(uint32_t mask, V v) {
  return __reduce_max_sync(mask, v);
}
IHA_DEVICE uint32_t ReduceAnd(uint32_t mask, uint32_t v) { return __reduce_and_sync(mask, v); }
IHA_DEVICE uint32_t ReduceOr(uint32_t mask, uint32_t v) { return __reduce_or_sync(mask, v); }
IHA_DEVICE uint32_t ReduceXor(uint32_t mask, uint32_t v) { return __reduce_xor_sync(mask, v); }

IHA_DEVICE uint32_t SharedAddress(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

template <int kBytes, class T, class U>
IHA_DEVICE void CpAsyncFill(T* to, U* from, uint32_t valid) {
  if constexpr (kBytes == 16) {  // past the first-level cache: tiles are read once per block
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(SharedAddress(to)), "l"(from), "n"(kBytes),
                 "r"(valid)
                 : "memory");
  }
}
template <int kBytes, class T, class U>
IHA_DEVICE void CpAsync(T* to, U* from) {
  CpAsyncFill<kBytes>(to, from, kBytes);
}
IHA_DEVICE void CpCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
IHA_DEVICE void CpWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
IHA_DEVICE void CpWaitAll() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace iha::kernels::ptx

#include "kernels/simt/cuda_matrix.h"
