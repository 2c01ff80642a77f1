#include "kernels/simt/device.h"

#include <algorithm>

#include "kernels/simt/block.h"

namespace iha::kernels::simt {
namespace {
constexpr size_t kGranule = 2;
constexpr uint32_t kFlag = 1u << 31;
constexpr uint32_t kHost = 1;

std::string Show(const Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

// What a device would refuse at the launch; empty if nothing.
std::string Refusal(const LaunchConfig& config, size_t max_shared_bytes) {
  if (config.grid.count() == 0 || config.block.count() == 0) {
    return "grid " + Show(config.grid) + " block " + Show(config.block) + " has no threads";
  }
  if (config.grid.x > 0x7FFFFFFF) return "grid " + Show(config.grid) + " has x above 2^31 - 1";
  if (config.grid.y > 65535 || config.grid.z > 65535) {
    return "grid " + Show(config.grid) + " has y or z above 65535";
  }
  if (config.block.count() > kMaxBlockThreads) {
    return "block " + Show(config.block) + " has more than " + std::to_string(kMaxBlockThreads) + " threads";
  }
  if (config.shared_bytes > max_shared_bytes) {
    return std::to_string(config.shared_bytes) + " bytes of shared memory, at most " + std::to_string(max_shared_bytes);
  }
  return "";
}
}  // namespace

Allocation::Allocation(const void* begin, size_t bytes, bool writable, bool written, std::string name)
    : begin_(reinterpret_cast<uintptr_t>(begin)),
      bytes_(bytes),
      writable_(writable),
      name_(std::move(name)),
      granules_((bytes + kGranule - 1) / kGranule, Granule{written ? kHost : 0, 0}) {}

void Allocation::MarkWritten() {
  for (Granule& g : granules_) {
    if (g.writer == 0) g.writer = kHost;
  }
}

bool Allocation::Touch(size_t offset, size_t bytes, Access access, uint32_t serial, uint32_t first,
                       Conflict* conflict) {
  const auto refuse = [&](ErrorKind kind, size_t granule, uint32_t other, bool other_writes) {
    *conflict = {kind, granule * kGranule, other, other_writes};
    return false;
  };
  for (size_t i = offset / kGranule; i < (offset + bytes + kGranule - 1) / kGranule; ++i) {
    Granule& g = granules_[i];
    const uint32_t writer = g.writer & ~kFlag, reader = g.reader & ~kFlag;
    const bool atomics = (g.writer & kFlag) != 0;
    if (access != Access::kWrite && writer == 0) return refuse(ErrorKind::kUninitialised, i, 0, false);
    if (writer >= first && writer != serial && !(atomics && access == Access::kAtomic)) {
      return refuse(ErrorKind::kBlockConflict, i, writer, true);
    }
    if (access == Access::kRead) {
      const bool many = reader >= first && (reader != serial || (g.reader & kFlag) != 0);
      g.reader = serial | (many ? kFlag : 0);
      continue;
    }
    if (reader >= first && (reader != serial || (g.reader & kFlag) != 0)) {
      return refuse(ErrorKind::kBlockConflict, i, reader, false);
    }
    g.writer = serial | (access == Access::kAtomic ? kFlag : 0);
  }
  return true;
}

void Device::Register(const void* begin, size_t bytes, bool writable, bool written, std::string name) {
  auto made = std::make_unique<Allocation>(begin, bytes, writable, written, std::move(name));
  const auto at = std::upper_bound(allocations_.begin(), allocations_.end(), made->begin(),
                                   [](uintptr_t address, const auto& a) { return address < a->begin(); });
  allocations_.insert(at, std::move(made));
}

void Device::Unregister(const void* begin) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  std::erase_if(allocations_, [&](const auto& a) { return a->begin() == address; });
  last_ = nullptr;
}

Allocation* Device::Find(const void* address) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  if (last_ != nullptr && value >= last_->begin() && value < last_->begin() + last_->bytes()) return last_;
  const auto after = std::upper_bound(allocations_.begin(), allocations_.end(), value,
                                      [](uintptr_t v, const auto& a) { return v < a->begin(); });
  if (after == allocations_.begin()) return nullptr;
  Allocation* found = std::prev(after)->get();
  if (value > found->begin() + found->bytes()) return nullptr;
  return last_ = found;
}

Report Device::Launch(const LaunchConfig& config, const std::function<void()>& thread) {
  report_ = {};
  if (std::string refusal = Refusal(config, options_.max_shared_bytes); !refusal.empty()) {
    report_.error = ErrorKind::kLaunch;
    report_.message = std::string(config.name) + ": " + refusal;
    return report_;
  }
  if (record_ != nullptr) {
    record_->push_back({config, thread});
    return report_;
  }
  if (!fibers_.Reserve(config.block.count())) {
    report_.error = ErrorKind::kLaunch;
    report_.message =
        std::string(config.name) + ": no memory for the stacks of " + std::to_string(config.block.count()) + " threads";
    return report_;
  }
  Block block(config, thread, *this, fibers_, next_serial_, report_);
  for (uint32_t z = 0; z < config.grid.z && report_.ok(); ++z) {
    for (uint32_t y = 0; y < config.grid.y && report_.ok(); ++y) {
      for (uint32_t x = 0; x < config.grid.x && report_.ok(); ++x) block.Run({x, y, z}, next_serial_++);
    }
  }
  if (!report_.ok()) fibers_.Clear();  // some are suspended in the middle of the kernel
  total_ += report_.counters;
  return report_;
}

}  // namespace iha::kernels::simt
