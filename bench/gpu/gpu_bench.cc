// gpu_bench: the GPU's own copy, copies between host and device through the backend's runtime, and kernels beside the
// copy: one line each, medians of 9 runs. "skipped: no GPU" and exit 0 where there is none.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "common/clock.h"
#include "kernels/matmul/matmul_gpu.h"
#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "model/device/cuda/cuda_runtime.h"

namespace iha::model {
namespace {

constexpr int kRuns = 9;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRuns / 2, values.end());
  return values[kRuns / 2];
}

// Seconds of what `work` enqueues, between two events of the stream; the first run warms up.
absl::StatusOr<double> OnTheGpu(DeviceRuntime& runtime, const std::function<absl::Status()>& work) {
  cudaEvent_t begin = nullptr, end = nullptr;
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&begin), "event"));
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&end), "event"));
  std::vector<double> seconds;
  for (int run = -1; run < kRuns; run++) {
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(begin, runtime.stream()), "event"));
    IHA_RETURN_IF_ERROR(work());
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(end, runtime.stream()), "event"));
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end), "run"));
    float ms = 0;
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, begin, end), "event"));
    if (run >= 0) seconds.push_back(ms * 1e-3);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
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

absl::Status Norm(DeviceRuntime& runtime, double copy) {
  constexpr uint32_t kRows = 65536, kWidth = 2560;
  const std::vector<uint16_t> ones(size_t{kRows} * kWidth, 0x3F80);
  IHA_ASSIGN_OR_RETURN(const auto x, DeviceRows::Copy(runtime, ones, "x"));
  IHA_ASSIGN_OR_RETURN(const auto y, DeviceRows::Make(runtime, ones.size(), "y"));
  IHA_ASSIGN_OR_RETURN(const auto weight, DeviceRows::Copy(runtime, std::vector<uint16_t>(kWidth, 0x3F80), "weight"));
  const kernels::RmsNormGpuArgs args{.x = x.data(),
                                     .weight = weight.data(),
                                     .y = y.data(),
                                     .rows = kRows,
                                     .n = kWidth,
                                     .ldx = kWidth,
                                     .ldy = kWidth,
                                     .eps = 1e-5f};
  IHA_ASSIGN_OR_RETURN(const double seconds, OnTheGpu(runtime, [&] {
                         return runtime.Check(kernels::RmsNormGpu(args, runtime.stream()), "norm");
                       }));
  const double rate = 4.0 * kRows * kWidth / seconds;
  fmt::print("RmsNormGpu {} x {}                {:8.0f} GB/s, {:.0f} % of the copy\n", kRows, kWidth, rate * 1e-9,
             100 * rate / copy);
  return absl::OkStatus();
}

absl::Status Product(DeviceRuntime& runtime, uint32_t m) {
  constexpr uint32_t kSize = 8192;
  const std::vector<uint16_t> ones(size_t{kSize} * kSize, 0x3F80);
  IHA_ASSIGN_OR_RETURN(const auto x, DeviceRows::Copy(runtime, ones, "x"));
  IHA_ASSIGN_OR_RETURN(const auto w, DeviceRows::Copy(runtime, ones, "w"));
  IHA_ASSIGN_OR_RETURN(const auto y, DeviceRows::Make(runtime, ones.size(), "y"));
  const kernels::MatmulGpuArgs args{.x = x.data(),
                                    .w = w.data(),
                                    .y = y.data(),
                                    .m = m,
                                    .n = kSize,
                                    .k = kSize,
                                    .ldx = kSize,
                                    .ldw = kSize,
                                    .ldy = kSize};
  IHA_ASSIGN_OR_RETURN(const double seconds, OnTheGpu(runtime, [&] {
                         return runtime.Check(kernels::MatmulGpu(args, runtime.stream()), "product");
                       }));
  fmt::print("MatmulGpu {} x {} x {}            {:8.1f} TFLOP/s, weights at {:.0f} GB/s\n", m, kSize, kSize,
             2.0 * m * kSize * kSize / seconds * 1e-12, 2.0 * kSize * kSize / seconds * 1e-9);
  return absl::OkStatus();
}

absl::Status Run(const CudaDevice& device) {
  IHA_ASSIGN_OR_RETURN(const auto runtime, MakeCudaRuntime(device));
  double copy = 0;
  IHA_RETURN_IF_ERROR(Copies(*runtime, &copy));
  IHA_RETURN_IF_ERROR(Norm(*runtime, copy));
  for (const uint32_t m : {8192u, 16u, 1u}) IHA_RETURN_IF_ERROR(Product(*runtime, m));
  return absl::OkStatus();
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
