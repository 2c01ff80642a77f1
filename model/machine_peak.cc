#include "model/machine_peak.h"

#include <new>

#include "common/errors.h"
#include "kernels/peak/peak.h"

namespace iha::model {
namespace {

constexpr size_t kReadBytes = size_t{128} << 20;  // well above the caches
constexpr double kSeconds = 0.2;                  // of each measurement

}  // namespace

absl::StatusOr<MachinePeak> MeasureMachinePeak(int threads) {
  if (threads < 1) return InvalidArgument("threads: {} (expected at least 1)", threads);
  try {
    return MachinePeak{.threads = threads,
                       .fma_gflops = kernels::FmaPeakGflops(threads, kSeconds),
                       .read_gbs = kernels::ReadBandwidthGBs(threads, kReadBytes, kSeconds)};
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("the machine's read bandwidth is measured over {} MiB: out of memory", kReadBytes >> 20);
  }
}

}  // namespace iha::model
