#include "kernels/simt/report.h"

#include <cstring>

namespace iha::kernels::simt {

std::string ToString(const Site& site) {
  const char* slash = std::strrchr(site.file, '/');
  return std::string(slash == nullptr ? site.file : slash + 1) + ":" + std::to_string(site.line);
}

const char* ToString(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kNone:
      return "none";
    case ErrorKind::kLaunch:
      return "launch";
    case ErrorKind::kDeadlock:
      return "deadlock";
    case ErrorKind::kDiverged:
      return "diverged";
    case ErrorKind::kBarrier:
      return "barrier";
    case ErrorKind::kRace:
      return "race";
    case ErrorKind::kAsyncCopy:
      return "async copy";
    case ErrorKind::kUninitialised:
      return "uninitialised";
    case ErrorKind::kOutOfBounds:
      return "out of bounds";
    case ErrorKind::kMisaligned:
      return "misaligned";
    case ErrorKind::kBlockConflict:
      return "block conflict";
  }
  return "unknown";
}

Counters& Counters::operator+=(const Counters& o) {
  blocks += o.blocks;
  global_read_bytes += o.global_read_bytes;
  global_written_bytes += o.global_written_bytes;
  global_atomics += o.global_atomics;
  shared_read_bytes += o.shared_read_bytes;
  shared_written_bytes += o.shared_written_bytes;
  mma += o.mma;
  mma_multiply_adds += o.mma_multiply_adds;
  warp_operations += o.warp_operations;
  barriers += o.barriers;
  matrix_bank_conflicts += o.matrix_bank_conflicts;
  return *this;
}

}  // namespace iha::kernels::simt
