// gpu_bench: the GPU's own copy, copies between host and device through the backend's runtime, the rate of mma.sync,
// and every kernel beside them: one line each, medians of 9 runs. "skipped: no GPU" and exit 0 where there is none.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "bench/gpu/kernel_cases.h"
#include "common/clock.h"
#include "model/device/cuda/cuda_runtime.h"

namespace iha::model {
namespace {

constexpr int kRuns = 9;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRuns / 2, values.end());
  return values[kRuns / 2];
}

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

absl::StatusOr<Event> MakeEvent() {
  cudaEvent_t event = nullptr;
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&event), "event"));
  return Event(event);
}

// Seconds of what `work` enqueues, between two events of the stream; the first run warms up.
absl::StatusOr<double> OnTheGpu(DeviceRuntime& runtime, const std::function<absl::Status()>& work) {
  IHA_ASSIGN_OR_RETURN(const Event begin, MakeEvent());
  IHA_ASSIGN_OR_RETURN(const Event end, MakeEvent());
  std::vector<double> seconds;
  for (int run = -1; run < kRuns; run++) {
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(begin.get(), runtime.stream()), "event"));
    IHA_RETURN_IF_ERROR(work());
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(end.get(), runtime.stream()), "event"));
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end.get()), "run"));
    float ms = 0;
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, begin.get(), end.get()), "event"));
    if (run >= 0) seconds.push_back(ms * 1e-3);
  }
  return Median(std::move(seconds));
}

// Seconds of a call that blocks.
absl::StatusOr<double> OnTheHost(const std::function<absl::Status()>& work) {
  RealClock clock;
  std::vector<double> seconds;
  for (int run = -1; run < kRuns; run++) {
    const absl::Duration begin = clock.Elapsed();
    IHA_RETURN_IF_ERROR(work());
    if (run >= 0) seconds.push_back(absl::ToDoubleSeconds(clock.Elapsed() - begin));
  }
  return Median(std::move(seconds));
}

absl::Status Copies(DeviceRuntime& runtime, double* copy) {
  constexpr size_t kBytes = size_t{1} << 30, kHost = size_t{256} << 20;
  IHA_ASSIGN_OR_RETURN(const auto from, DeviceArray<std::byte>::Make(runtime, kBytes, "from"));
  IHA_ASSIGN_OR_RETURN(const auto to, DeviceArray<std::byte>::Make(runtime, kBytes, "to"));
  IHA_ASSIGN_OR_RETURN(
      const double device, OnTheGpu(runtime, [&] {
        return CudaStatus(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, runtime.stream()),
                          "copy");
      }));
  *copy = 2.0 * kBytes / device;
  fmt::print("copy on the device, read and written   {:8.0f} GB/s\n", *copy * 1e-9);
  std::vector<std::byte> host(kHost);
  IHA_ASSIGN_OR_RETURN(const double up, OnTheHost([&]() -> absl::Status {
                         IHA_RETURN_IF_ERROR(runtime.Upload(to.data(), host.data(), kHost));
                         std::byte last{};
                         return runtime.Download(&last, to.data(), 1);
                       }));
  fmt::print("upload through pinned memory           {:8.1f} GB/s\n", kHost / up * 1e-9);
  IHA_ASSIGN_OR_RETURN(const double down, OnTheHost([&] { return runtime.Download(host.data(), from.data(), kHost); }));
  fmt::print("download through pinned memory         {:8.1f} GB/s\n", kHost / down * 1e-9);
  return absl::OkStatus();
}

// What a case is bound by first: the share of the copy or of mma.sync, then what it does a second.
absl::Status Kernels(DeviceRuntime& runtime, double copy) {
  double peak = 0;
  const KernelCaseSink measure = [&](const KernelCase& c) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const double seconds,
                         OnTheGpu(runtime, [&] { return runtime.Check(c.launch(runtime.stream()), c.name.c_str()); }));
    const double bytes = c.bytes / seconds, flops = c.flops / seconds;
    fmt::print("{:<58} {:10.1f} us", c.name, seconds * 1e6);
    if (c.flops == 0) {
      fmt::print(" {:8.0f} GB/s, {:3.0f} % of the copy\n", bytes * 1e-9, 100 * bytes / copy);
      return absl::OkStatus();
    }
    if (peak == 0) peak = flops;
    fmt::print(" {:8.1f} TFLOP/s, {:3.0f} % of mma.sync", flops * 1e-12, 100 * flops / peak);
    fmt::print("{}\n", c.bytes == 0 ? "" : fmt::format(", {:.0f} GB/s", bytes * 1e-9));
    return absl::OkStatus();
  };
  IHA_RETURN_IF_ERROR(ForEachMatrixCase(runtime, kPaperSizes, measure));
  return ForEachMemoryCase(runtime, kPaperSizes, measure);
}

absl::Status Run(const CudaDevice& device) {
  IHA_ASSIGN_OR_RETURN(const auto runtime, MakeCudaRuntime(device));
  double copy = 0;
  IHA_RETURN_IF_ERROR(Copies(*runtime, &copy));
  return Kernels(*runtime, copy);
}

}  // namespace
}  // namespace iha::model

int main() {
  const auto device = iha::model::FindCudaDevice("cuda");
  if (!device.ok()) {
    fmt::print("skipped: no GPU ({})\n", std::string(device.status().message()));
    return 0;
  }
  const absl::Status status = iha::model::Run(*device);
  if (!status.ok()) fmt::print(stderr, "gpu_bench: {}\n", std::string(status.message()));
  return status.ok() ? 0 : 1;
}
