// report.h: how a launch under the emulator is run, and what it found.
//
// A launch stops at the first error; what it wrote until then stays. Messages are one line: kernel, block, thread, the
// line of the kernel's source, what was done, what was expected, and the other party where there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

#include "kernels/simt/target.h"

namespace iha::kernels::simt {

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  [[nodiscard]] constexpr uint64_t count() const { return uint64_t{x} * y * z; }
};

// A line of device code. Files are string literals.
struct Site {
  const char* file = "";
  uint32_t line = 0;
  Site() = default;
  Site(const std::source_location& at)
      : file(at.file_name()), line(at.line()) {}  // NOLINT(google-explicit-constructor): a default argument
};
std::string ToString(const Site& site);  // "name.cu:41"

// When the bytes of a cp.async arrive in shared memory: as early or as late as the hardware may do it. Each shows
// mistakes in results that the other hides; the race detector sees them in both.
enum class CopyMode {
  kEager,  // when it is issued
  kLazy,   // when its group is waited for
};

struct Options {
  uint64_t seed = 1;  // of the order in which warps, and lanes of a warp, run
  CopyMode copies = CopyMode::kLazy;
  bool check_shared = true;  // races and reads of unwritten bytes of shared memory
  bool check_global = true;  // blocks of one launch that meet in global memory; reads of unwritten bytes
  size_t max_shared_bytes = kGpuMaxSharedBytes;  // of a block
};

enum class ErrorKind {
  kNone,
  kLaunch,         // grid, block or shared memory that no device accepts
  kDeadlock,       // no thread can go on
  kDiverged,       // a warp operation without all the lanes of its mask, or by lanes outside of it
  kBarrier,        // a block barrier by a part of a warp, or with another count than its other users
  kRace,           // shared memory: two accesses, one a write, no barrier between
  kAsyncCopy,      // bytes that a cp.async still writes, or a copy that nobody waits for
  kUninitialised,  // bytes that nobody wrote
  kOutOfBounds,    // outside of the block's shared memory, or of the allocation that the pointer came from
  kMisaligned,
  kBlockConflict,  // global memory: two blocks, one writes, not both by atomics
};
const char* ToString(ErrorKind kind);

// Sums over all threads of a launch. Bytes are those that threads ask for: a value that 32 lanes read counts 32 times.
struct Counters {
  uint64_t blocks = 0;
  uint64_t global_read_bytes = 0;
  uint64_t global_written_bytes = 0;
  uint64_t global_atomics = 0;
  uint64_t shared_read_bytes = 0;      // ldmatrix included
  uint64_t shared_written_bytes = 0;   // cp.async included
  uint64_t mma = 0;                    // instructions of a warp
  uint64_t mma_multiply_adds = 0;      // m * n * k each
  uint64_t warp_operations = 0;        // shuffles, votes, matches, reductions, SyncWarp, ldmatrix, stmatrix, mma
  uint64_t barriers = 0;               // completed block barriers
  uint64_t matrix_bank_conflicts = 0;  // extra shared memory cycles of ldmatrix and stmatrix, beyond one for 8 rows

  Counters& operator+=(const Counters& o);
};

struct Report {
  ErrorKind error = ErrorKind::kNone;
  std::string message;  // empty if there is no error
  Counters counters;
  [[nodiscard]] bool ok() const { return error == ErrorKind::kNone; }
};

}  // namespace iha::kernels::simt
