// forwarding_runtime.h: the emulated device behind a runtime of which a test overrides what it is about.
#pragma once

#include <memory>

#include "model/device/device_runtime.h"
#include "model/device/emulated_runtime.h"

namespace iha::model::testing {

class ForwardingRuntime : public DeviceRuntime {
 public:
  ForwardingRuntime() : device_(MakeEmulatedRuntime(EmulatedOptions())) {}
  kernels::GpuStream stream() override { return device_->stream(); }
  absl::StatusOr<void*> Allocate(size_t bytes, DeviceFill fill, const char* name) override {
    return device_->Allocate(bytes, fill, name);
  }
  void Free(void* memory) override { device_->Free(memory); }
  absl::Status Upload(void* to, const void* from, size_t bytes) override { return device_->Upload(to, from, bytes); }
  absl::Status Download(void* to, const void* from, size_t bytes) override {
    return device_->Download(to, from, bytes);
  }
  absl::Status Check(kernels::GpuStatus status, const char* kernel) override { return device_->Check(status, kernel); }
  int64_t FreeBytes() override { return device_->FreeBytes(); }
  uint32_t MaxSharedBytes() const override { return device_->MaxSharedBytes(); }
  absl::StatusOr<std::unique_ptr<DeviceMark>> Mark() override { return device_->Mark(); }
  absl::StatusOr<absl::Duration> Between(const DeviceMark& begin, const DeviceMark& end) override {
    return device_->Between(begin, end);
  }
  absl::Status BeginRecording() override { return device_->BeginRecording(); }
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override { return device_->EndRecording(); }
  absl::Status Replay(DeviceGraph& graph) override { return device_->Replay(graph); }

 protected:
  DeviceRuntime& device() { return *device_; }

 private:
  const std::unique_ptr<DeviceRuntime> device_;
};

}  // namespace iha::model::testing
