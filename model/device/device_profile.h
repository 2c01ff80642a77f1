// device_profile.h: the time of a forward pass's operations by the device's own marks (op_profile.h).
//
// Marks are enqueued around each operation and read when the step is over, so that nothing waits in between. Off,
// nothing is marked. Belongs to the backend's thread. Errors: the runtime's.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "model/device/device_runtime.h"
#include "model/op_profile.h"

namespace iha::model {

class DeviceProfile {
 public:
  // The runtime must outlive this.
  DeviceProfile(DeviceRuntime& runtime, bool on) : runtime_(runtime), on_(on) {}

  bool on() const { return on_; }
  // What `run` (a Status or StatusOr) enqueues counts as `op`, if it succeeds; not within another one.
  template <typename Run>
  std::invoke_result_t<Run> Time(Op op, const OpWork& work, const Run& run) {
    if (!on_) return run();
    IHA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMark> begin, runtime_.Mark());
    std::invoke_result_t<Run> result = run();
    if (!result.ok()) return result;
    IHA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMark> end, runtime_.Mark());
    marked_.push_back({op, work, std::move(begin), std::move(end)});
    return result;
  }

  // A step begins: what one before it left unread, as it failed, counts for nothing.
  void Begin() { marked_.clear(); }
  // It is over: waits for what was marked and adds it up.
  absl::Status End();

  const OpTotals& totals() const { return totals_; }

 private:
  struct Marked {
    Op op;
    OpWork work;
    std::unique_ptr<DeviceMark> begin, end;
  };
  DeviceRuntime& runtime_;
  const bool on_;
  std::vector<Marked> marked_;
  OpTotals totals_{};
};

}  // namespace iha::model
