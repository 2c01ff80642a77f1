// machine_peak.h: the roof of this machine's CPU, for shares in profiles. Measured, not looked up; half a second, and
// 128 MiB of memory. Blocking; any thread.
#pragma once

#include "absl/status/statusor.h"
#include "common/telemetry.h"

namespace iha::model {

// ResourceExhausted: no memory for the buffer that is read. InvalidArgument: threads < 1.
absl::StatusOr<MachinePeak> MeasureMachinePeak(int threads);

}  // namespace iha::model
