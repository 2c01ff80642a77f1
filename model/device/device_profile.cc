#include "model/device/device_profile.h"

namespace iha::model {

absl::Status DeviceProfile::End() {
  for (const Marked& marked : marked_) {
    IHA_ASSIGN_OR_RETURN(const absl::Duration time, runtime_.Between(*marked.begin, *marked.end));
    OpTotal& total = totals_[static_cast<size_t>(marked.op)];
    total.calls++;
    total.time += time;
    total.work += marked.work;
  }
  marked_.clear();
  return absl::OkStatus();
}

}  // namespace iha::model
