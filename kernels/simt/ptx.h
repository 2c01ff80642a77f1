// ptx.h: all that device code may use beyond C++: indices, memory, barriers, warp operations, copies, matrices.
//
// A kernel is a .cu file that includes this and target.h, and compiles with nvcc (cuda_ptx.h: inline PTX) and with any
// C++20 compiler (emulated_*.h: simt/block.h). It reaches memory only by Load and Store on Global<T> and Shared<T>
// (pointers under nvcc; under the emulator they know their allocation), and has no __shared__ arrays, no raw asm and no
// types of one byte. IHA_KERNEL is __global__, IHA_DEVICE __device__ inlined; IHA_UNROLL (_BY_TWO, _NEVER)
// stands before a loop over registers. Functions of ptx:: (of the calling thread; a mask names lanes of its warp, which
// must all come):
//
//   ThreadX/Y/Z, BlockX/Y/Z, GridX/Y/Z, BlockDimX/Y/Z, Lane(), WarpIndex() (ThreadX / 32, for blocks of one row)
//   Global<T>(T*)                    memory of the device; + n counts elements
//   DynamicShared<T>(byte offset)    the block's shared memory
//   Load(p), Store(p, value)         one T; LoadAs<V>(p), StoreAs(p, V): sizeof(V) bytes at a multiple of sizeof(V)
//   AtomicAdd/Max/Min/Exch/Cas(p, ..)  relaxed; the old value
//   SyncThreads(), SyncThreadsCount/Or/And(predicate)
//   BarSync(id, threads), BarArrive(id, threads)      barriers 0 to 15, whole warps; SyncThreads is 0
//   SyncWarp(mask)
//   ShflXor/Up/Down/Idx(mask, value, n, width = 32)   of 4 or 8 bytes; reading a lane outside the mask is an error
//   Ballot, Any, All(mask, predicate); MatchAny, MatchAll(mask, value); ReduceAdd/Min/Max/And/Or/Xor(mask, 32-bit)
//   CpAsync<bytes>(shared, global), CpAsyncFill<bytes>(shared, global, valid): rest is zeros; bytes 4, 8, 16
//   CpCommit(), CpWait<n>(): all but the newest n groups have landed; CpWaitAll(): also the open one
//   LdMatrix<n, transposed>(registers, row), StMatrix<..>(row, registers): n = 1, 2, 4 matrices of 8 x 8 16-bit values
//   MmaBF16, MmaF16 (m16n8k16), MmaTF32 (m16n8k8): (float c[4]) += a b, fragments as in the PTX ISA
//   PackBF16/PackF16(low, high), LowBF16/HighBF16(pair), BF16ToFloat, FloatToBF16, ToTF32, Exp2, Rsqrt
//
// Rounding of conversions: to nearest, ties to even (ToTF32: ties away). Exp2, Rsqrt are approximations on the device
// (relative error below 2^-21). The emulated mma adds products to c in fp32 in increasing k (matrix.h); the device's
// own order is not documented, so no test may expect equal bits of both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iha::kernels::ptx {

inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

// N values that move together: LoadAs<Pack<uint32_t, 4>>(p) is one 16-byte access.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

}  // namespace iha::kernels::ptx

#ifdef __CUDACC__
#include "kernels/simt/cuda_ptx.h"
#else
#include "kernels/simt/emulated_matrix.h"
#include "kernels/simt/emulated_memory.h"
#include "kernels/simt/emulated_warp.h"
#endif
