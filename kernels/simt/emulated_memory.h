// emulated_memory.h: indices, memory and asynchronous copies of ptx.h under the emulator.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "kernels/simt/block.h"

#define IHA_KERNEL
#define IHA_DEVICE inline
#define IHA_UNROLL
#define IHA_UNROLL_BY_TWO
#define IHA_UNROLL_NEVER
#define IHA_LAUNCH_BOUNDS(threads, blocks)

namespace iha::kernels::ptx {

using simt::Site;
using Here = std::source_location;

inline uint32_t ThreadX() { return simt::Block::Current().thread_index().x; }
inline uint32_t ThreadY() { return simt::Block::Current().thread_index().y; }
inline uint32_t ThreadZ() { return simt::Block::Current().thread_index().z; }
inline uint32_t BlockX() { return simt::Block::Current().block_index().x; }
inline uint32_t BlockY() { return simt::Block::Current().block_index().y; }
inline uint32_t BlockZ() { return simt::Block::Current().block_index().z; }
inline uint32_t GridX() { return simt::Block::Current().config().grid.x; }
inline uint32_t GridY() { return simt::Block::Current().config().grid.y; }
inline uint32_t GridZ() { return simt::Block::Current().config().grid.z; }
inline uint32_t BlockDimX() { return simt::Block::Current().config().block.x; }
inline uint32_t BlockDimY() { return simt::Block::Current().config().block.y; }
inline uint32_t BlockDimZ() { return simt::Block::Current().config().block.z; }
inline uint32_t Lane() { return simt::Block::Current().lane(); }
inline uint32_t WarpIndex() { return ThreadX() / simt::kWarpSize; }

template <class T>
class Global {
 public:
  // The pointer must lie in memory of the device, or be null and never used.
  explicit Global(T* p, const Site& at = Here::current()) : p_(p) {
    simt::Block& block = simt::Block::Current();
    if (p == nullptr) return;
    from_ = block.device().Find(p);
    if (from_ == nullptr) block.Fail(simt::ErrorKind::kOutOfBounds, at, "a pointer to no memory of the device");
  }
  friend Global operator+(Global g, std::integral auto n) {
    g.p_ = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(g.p_) +
                                static_cast<uintptr_t>(static_cast<int64_t>(n) * static_cast<int64_t>(sizeof(T))));
    return g;
  }
  [[nodiscard]] T* address() const { return p_; }
  [[nodiscard]] simt::Allocation* from() const { return from_; }

 private:
  T* p_ = nullptr;
  simt::Allocation* from_ = nullptr;
};

template <class T>
class Shared {
  static_assert(sizeof(T) >= 2, "the race detector has no one-byte types");

 public:
  explicit Shared(int64_t offset) : offset_(offset) {}
  friend Shared operator+(Shared s, std::integral auto n) {
    s.offset_ += static_cast<int64_t>(n) * static_cast<int64_t>(sizeof(T));
    return s;
  }
  [[nodiscard]] int64_t offset() const { return offset_; }

 private:
  int64_t offset_;
};

template <class T>
Shared<T> DynamicShared(size_t byte_offset = 0) {
  return Shared<T>(static_cast<int64_t>(byte_offset));
}

template <class V, class T>
V LoadAs(Global<T> p, const Site& at = Here::current()) {
  static_assert(std::is_trivially_copyable_v<V>);
  simt::Block::Current().Global(simt::Block::Access::kRead, p.from(), p.address(), sizeof(V), sizeof(V), at);
  V value;
  std::memcpy(&value, p.address(), sizeof(V));
  return value;
}
template <class V, class T>
V LoadAs(Shared<T> p, const Site& at = Here::current()) {
  simt::Block& b = simt::Block::Current();
  V value;
  std::memcpy(&value, b.Shared(simt::Block::Access::kRead, p.offset(), sizeof(V), sizeof(V), at, b.lane()), sizeof(V));
  return value;
}
template <class V, class T>
void StoreAs(Global<T> p, const V& value, const Site& at = Here::current()) {
  static_assert(!std::is_const_v<T>);
  simt::Block::Current().Global(simt::Block::Access::kWrite, p.from(), p.address(), sizeof(V), sizeof(V), at);
  std::memcpy(static_cast<void*>(p.address()), &value, sizeof(V));
}
template <class V, class T>
void StoreAs(Shared<T> p, const V& value, const Site& at = Here::current()) {
  simt::Block& b = simt::Block::Current();
  std::memcpy(b.Shared(simt::Block::Access::kWrite, p.offset(), sizeof(V), sizeof(V), at, b.lane()), &value, sizeof(V));
}

template <class T>
std::remove_const_t<T> Load(Global<T> p, const Site& at = Here::current()) {
  return LoadAs<std::remove_const_t<T>>(p, at);
}
template <class T>
std::remove_const_t<T> Load(Shared<T> p, const Site& at = Here::current()) {
  return LoadAs<std::remove_const_t<T>>(p, at);
}
template <class T>
void Store(Global<T> p, std::type_identity_t<T> value, const Site& at = Here::current()) {
  StoreAs(p, value, at);
}
template <class T>
void Store(Shared<T> p, std::type_identity_t<T> value, const Site& at = Here::current()) {
  StoreAs(p, value, at);
}

// Threads take turns between calls of the emulator only, so reading and writing by hand is one step.
template <class T, class Change>
T Atomic(Global<T> p, const Site& at, Change change) {
  simt::Block::Current().Global(simt::Block::Access::kAtomic, p.from(), p.address(), sizeof(T), sizeof(T), at);
  const T old = *p.address();
  *p.address() = change(old);
  return old;
}
template <class T, class Change>
T Atomic(Shared<T> p, const Site& at, Change change) {
  simt::Block& b = simt::Block::Current();
  unsigned char* bytes = b.Shared(simt::Block::Access::kAtomic, p.offset(), sizeof(T), sizeof(T), at, b.lane());
  T old;
  std::memcpy(&old, bytes, sizeof(T));
  const T made = change(old);
  std::memcpy(bytes, &made, sizeof(T));
  return old;
}

template <template <class> class Memory, class T>
T AtomicAdd(Memory<T> p, std::type_identity_t<T> v, const Site& at = Here::current()) {
  return Atomic(p, at, [v](T old) { return static_cast<T>(old + v); });
}
template <template <class> class Memory, class T>
T AtomicMax(Memory<T> p, std::type_identity_t<T> v, const Site& at = Here::current()) {
  return Atomic(p, at, [v](T old) { return std::max(old, v); });
}
template <template <class> class Memory, class T>
T AtomicMin(Memory<T> p, std::type_identity_t<T> v, const Site& at = Here::current()) {
  return Atomic(p, at, [v](T old) { return std::min(old, v); });
}
template <template <class> class Memory, class T>
T AtomicExch(Memory<T> p, std::type_identity_t<T> v, const Site& at = Here::current()) {
  return Atomic(p, at, [v](T) { return v; });
}
template <template <class> class Memory, class T>
T AtomicCas(Memory<T> p, std::type_identity_t<T> expected, std::type_identity_t<T> v,
            const Site& at = Here::current()) {
  return Atomic(p, at, [expected, v](T old) { return old == expected ? v : old; });
}

template <int kBytes, class T, class U>
void CpAsyncFill(Shared<T> to, Global<U> from, uint32_t valid, const Site& at = Here::current()) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  simt::Block::Current().Copy(to.offset(), from.from(), from.address(), kBytes, valid, at);
}
template <int kBytes, class T, class U>
void CpAsync(Shared<T> to, Global<U> from, const Site& at = Here::current()) {
  CpAsyncFill<kBytes>(to, from, kBytes, at);
}
inline void CpCommit() { simt::Block::Current().CommitCopies(); }
template <int kPending>
void CpWait() {
  simt::Block::Current().WaitCopies(kPending);
}
inline void CpWaitAll() {
  simt::Block::Current().CommitCopies();
  simt::Block::Current().WaitCopies(0);
}

}  // namespace iha::kernels::ptx
