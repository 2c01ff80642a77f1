// What is written on CUDA's runtime, over one that stands in for it (fake_cudart.h): copies through pinned memory, what
// is given back, the lines for what goes wrong. Nothing here shows that a GPU does the same: tests labelled gpu do.
#include "model/device/cuda/cuda_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/errors.h"
#include "model/device/cuda/pinned_ring.h"
#include "tests/model/device/cuda/fake_cudart.h"

namespace iha::model {
namespace {

using testing::Fake;
using ::testing::HasSubstr;

class CudaRuntimeTest : public ::testing::Test {
 protected:
  CudaRuntimeTest() { testing::ResetFake(); }
  ~CudaRuntimeTest() override { EXPECT_THAT(Fake().mistakes, ::testing::IsEmpty()); }

  static std::unique_ptr<DeviceRuntime> Make() {
    auto runtime = MakeCudaRuntime({.index = 0, .architecture = 90});
    EXPECT_TRUE(runtime.ok()) << runtime.status();
    return *std::move(runtime);
  }
};

std::vector<uint32_t> Counted(size_t n, uint32_t first) {
  std::vector<uint32_t> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

constexpr size_t kPiece = PinnedRing::kPieceBytes / sizeof(uint32_t);

// Of one value to more than all pieces together hold; the source is overwritten as soon as Upload returns.
TEST_F(CudaRuntimeTest, WhatGoesUpComesDown) {
  const auto runtime = Make();
  for (const size_t n : {size_t{1}, size_t{65}, kPiece - 1, kPiece, kPiece + 1, 4 * kPiece, 9 * kPiece + 7}) {
    SCOPED_TRACE(n);
    std::vector<uint32_t> source = Counted(n, 5);
    auto array = DeviceArray<uint32_t>::Copy(*runtime, source, "values");
    ASSERT_TRUE(array.ok()) << array.status();
    std::fill(source.begin(), source.end(), 0);
    const auto back = array->ToHost();
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == Counted(n, 5));
  }
}

// Small copies, as of a step's tables: each keeps its own place until it is done, and none waits.
TEST_F(CudaRuntimeTest, UploadsDoNotWaitForEachOther) {
  const auto runtime = Make();
  std::vector<DeviceArray<uint32_t>> arrays;
  for (uint32_t i = 0; i < 300; i++) {
    auto array = DeviceArray<uint32_t>::Copy(*runtime, Counted(i + 1, 1000 * i), "table");
    ASSERT_TRUE(array.ok()) << array.status();
    arrays.push_back(*std::move(array));
  }
  EXPECT_EQ(Fake().waits, 0);
  for (uint32_t i = 0; i < arrays.size(); i++) EXPECT_TRUE(*arrays[i].ToHost() == Counted(i + 1, 1000 * i)) << i;
  // A piece that is used again is waited for, no more than that.
  const auto big = DeviceArray<uint32_t>::Copy(*runtime, Counted(5 * kPiece, 1), "big");
  ASSERT_TRUE(big.ok());
  EXPECT_FALSE(Fake().queue.empty());
}

// Marks lie in the order of the stream: what is enqueued between two takes their time, however late it is asked for.
TEST_F(CudaRuntimeTest, MarksTimeWhatLiesBetween) {
  {
    const auto runtime = Make();
    const auto array = DeviceArray<uint32_t>::Copy(*runtime, Counted(8, 1), "values");
    ASSERT_TRUE(array.ok()) << array.status();
    const auto kernels = [&](int n) {
      for (int i = 0; i < n; i++) {
        cudaMemcpyAsync(array->data(), array->data() + 4, 16, cudaMemcpyDeviceToDevice, runtime->stream());
      }
    };
    const auto first = runtime->Mark();
    kernels(3);
    const auto second = runtime->Mark();
    kernels(2);
    const auto third = runtime->Mark();
    ASSERT_TRUE(first.ok() && second.ok() && third.ok());
    EXPECT_EQ(Fake().waits, 0);
    EXPECT_EQ(*runtime->Between(**second, **third), absl::Milliseconds(2));
    EXPECT_EQ(*runtime->Between(**first, **second), absl::Milliseconds(3));
    Fake().failing = "cudaEventRecord";
    EXPECT_EQ(runtime->Mark().status().code(), absl::StatusCode::kInternal);
  }
  EXPECT_TRUE(Fake().NothingLeft());
}

TEST_F(CudaRuntimeTest, AllIsGivenBack) {
  {
    const auto runtime = Make();
    const auto array = DeviceArray<uint16_t>::Make(*runtime, 0, "empty");
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_NE(array->data(), nullptr);
    EXPECT_EQ(array->ToHost()->size(), 0u);
    const auto other = DeviceArray<uint16_t>::Copy(*runtime, std::vector<uint16_t>{1, 2, 3}, "some");
    ASSERT_TRUE(other.ok());
  }
  EXPECT_TRUE(Fake().NothingLeft());
}

// Wherever opening stops, what was made before goes.
TEST_F(CudaRuntimeTest, AnErrorWhileOpeningLeavesNothing) {
  for (const char* call : {"cudaStreamCreateWithFlags", "cudaMemPoolCreate", "cudaMemPoolSetAttribute",
                           "cudaMallocHost", "cudaEventCreateWithFlags"}) {
    SCOPED_TRACE(call);
    testing::ResetFake();
    Fake().failing = call;
    Fake().failing_from = call == std::string("cudaMallocHost") ? 3 : 1;
    const absl::Status status = MakeCudaRuntime({.index = 0, .architecture = 90}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(Fake().NothingLeft());
  }
}

TEST_F(CudaRuntimeTest, OutOfMemorySaysHowMuchIsFree) {
  const auto runtime = Make();
  Fake().memory = size_t{100} << 20;
  const auto some = DeviceArray<std::byte>::Make(*runtime, size_t{60} << 20, "weights");
  ASSERT_TRUE(some.ok());
  const absl::Status status = DeviceArray<std::byte>::Make(*runtime, size_t{50} << 20, "cache").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "cache of 50 MiB: out of memory of the GPU (40 of 100 MiB free)");
  EXPECT_EQ(Fake().calls["cudaGetLastError"], 1);  // or the next launch would fail with it
}

TEST_F(CudaRuntimeTest, FaultsCarryCudasTextAndName) {
  const auto runtime = Make();
  EXPECT_TRUE(runtime->Check(0, "norm").ok());
  const absl::Status launch = runtime->Check(cudaErrorIllegalAddress, "norm");
  EXPECT_EQ(launch.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(launch.message(), "norm: an illegal memory access was encountered (cudaErrorIllegalAddress)");
  const auto array = DeviceArray<uint16_t>::Make(*runtime, 8, "row");
  ASSERT_TRUE(array.ok());
  Fake().failing = "cudaStreamSynchronize";
  Fake().failing_from = 0;
  Fake().error = cudaErrorIllegalAddress;
  const absl::Status step = array->ToHost().status();
  EXPECT_EQ(step.message(), "the step: an illegal memory access was encountered (cudaErrorIllegalAddress)");
}

// A launch: a copy on the device.
void Launch(DeviceRuntime& runtime, const DeviceArray<uint32_t>& to, const DeviceArray<uint32_t>& from) {
  ASSERT_EQ(cudaMemcpyAsync(to.data(), from.data(), from.size() * 4, cudaMemcpyDeviceToDevice, runtime.stream()),
            cudaSuccess);
}

// Values go through memory of the recording's own; each replay reads what is there by then.
TEST_F(CudaRuntimeTest, WhatIsRecordedIsDoneWhenItIsReplayed) {
  {
    const auto runtime = Make();
    const auto in = DeviceArray<uint32_t>::Copy(*runtime, Counted(100, 1), "in");
    const auto out = DeviceArray<uint32_t>::Copy(*runtime, Counted(100, 900), "out");
    ASSERT_TRUE(in.ok() && out.ok());
    std::vector<std::unique_ptr<DeviceGraph>> graphs;
    for (int i = 0; i < 2; i++) {
      ASSERT_TRUE(runtime->BeginRecording().ok());
      {
        const auto first = DeviceArray<uint32_t>::Make(*runtime, 100, "scratch");
        ASSERT_TRUE(first.ok());
        Launch(*runtime, *first, *in);
        const auto second = DeviceArray<uint32_t>::Make(*runtime, 100, "scratch");
        ASSERT_TRUE(second.ok());
        EXPECT_NE(first->data(), second->data());
        Launch(*runtime, *second, *first);
        Launch(*runtime, *out, *second);
        EXPECT_FALSE(runtime->Upload(out->data(), "?", 1).ok());
        char byte = 0;
        EXPECT_FALSE(runtime->Download(&byte, out->data(), 1).ok());
      }
      auto graph = runtime->EndRecording();
      ASSERT_TRUE(graph.ok()) << graph.status();
      graphs.push_back(*std::move(graph));
    }
    EXPECT_EQ(Fake().calls["cudaMalloc"], 2) << "the second recording takes the first one's memory";
    EXPECT_TRUE(*out->ToHost() == Counted(100, 900)) << "recorded is not done";
    for (uint32_t i = 0; i < 4; i++) {
      ASSERT_TRUE(in->Set(Counted(100, 10 * i)).ok());
      ASSERT_TRUE(runtime->Replay(*graphs[i % 2]).ok());
      EXPECT_TRUE(*out->ToHost() == Counted(100, 10 * i)) << i;
    }
    const auto later = DeviceArray<uint32_t>::Make(*runtime, 100, "later");
    ASSERT_TRUE(later.ok());
    EXPECT_EQ(Fake().calls["cudaMalloc"], 2) << "memory outside of recordings is the pool's";
  }
  EXPECT_TRUE(Fake().NothingLeft());
}

// Memory that comes with a library: one address, and what was asked of it.
class OneAddress final : public CudaMemory {
 public:
  explicit OneAddress(std::vector<std::string>& asked) : asked_(asked) {}
  ~OneAddress() override { asked_.push_back(fmt::format("gone, {} streams", Fake().streams.size())); }
  absl::StatusOr<void*> Allocate(size_t bytes, const char* name) override {
    asked_.push_back(fmt::format("{} of {}", name, bytes));
    if (bytes > 100) return ResourceExhausted("no more than 100");
    return &memory_;
  }
  void Free(void* memory) override { asked_.push_back(memory == &memory_ ? "free" : "free of what?"); }
  std::optional<int64_t> Kept() override { return 1000; }
  absl::Status BeginRecording() override {
    asked_.push_back("begin");
    return absl::OkStatus();
  }
  absl::Status EndRecording() override {
    asked_.push_back("end");
    return absl::OkStatus();
  }

 private:
  std::vector<std::string>& asked_;
  char memory_ = 0;
};

TEST_F(CudaRuntimeTest, MemoryComesFromTheLibraryWhereThereIsOne) {
  std::vector<std::string> asked;
  {
    const auto made = MakeCudaRuntime({.index = 0, .architecture = 90}, [&](const CudaDevice&, cudaStream_t stream) {
      EXPECT_EQ(Fake().streams.count(stream), 1u);
      return absl::StatusOr<CudaFast>(
          CudaFast{.memory = std::make_unique<OneAddress>(asked), .fast = std::make_unique<SplitKeysOnly>(7)});
    });
    ASSERT_TRUE(made.ok()) << made.status();
    DeviceRuntime& runtime = **made;
    EXPECT_EQ(runtime.fast()->processors(), 7u);
    ASSERT_TRUE(DeviceArray<char>::Make(runtime, 0, "nothing").ok());
    EXPECT_EQ(runtime.FreeBytes(), static_cast<int64_t>(Fake().memory) + 1000);
    ASSERT_TRUE(runtime.BeginRecording().ok());
    EXPECT_EQ(DeviceArray<char>::Make(runtime, 101, "much").status().message(),
              "much of 0 MiB: out of memory of the GPU (1024 of 1024 MiB free)");
    ASSERT_TRUE(runtime.EndRecording().ok());
    Fake().failing = "cudaStreamBeginCapture";
    EXPECT_FALSE(runtime.BeginRecording().ok());
  }
  EXPECT_THAT(asked, ::testing::ElementsAre("nothing of 1", "free", "begin", "much of 101", "end", "begin", "end",
                                            "gone, 1 streams"));
  EXPECT_EQ(Fake().calls["cudaMemPoolCreate"], 0);
  EXPECT_TRUE(Fake().NothingLeft());
}

TEST_F(CudaRuntimeTest, ARecordingGetsWhatThePoolKeepsForNobody) {
  const auto runtime = Make();
  Fake().memory = size_t{100} << 20;
  Fake().kept = size_t{80} << 20;
  ASSERT_TRUE(runtime->BeginRecording().ok());
  {
    const auto scratch = DeviceArray<std::byte>::Make(*runtime, size_t{50} << 20, "scratch");
    EXPECT_TRUE(scratch.ok()) << scratch.status();
    const auto more = DeviceArray<std::byte>::Make(*runtime, size_t{60} << 20, "scratch");
    EXPECT_EQ(more.status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(runtime->EndRecording().ok());
  EXPECT_EQ(Fake().calls["cudaMemPoolTrimTo"], 2);
}

// Whatever fails, the stream is as before.
TEST_F(CudaRuntimeTest, ARecordingThatFailsLeavesNothingBehind) {
  for (const char* call : {"cudaStreamBeginCapture", "cudaMalloc", "cudaStreamEndCapture", "cudaGraphInstantiate"}) {
    SCOPED_TRACE(call);
    testing::ResetFake();
    {
      const auto runtime = Make();
      Fake().failing = call;
      Fake().error = call == std::string("cudaMalloc") ? cudaErrorMemoryAllocation : cudaErrorUnknown;
      const absl::Status begun = runtime->BeginRecording();
      EXPECT_EQ(begun.ok(), call != std::string("cudaStreamBeginCapture"));
      if (begun.ok()) {
        const auto scratch = DeviceArray<uint32_t>::Make(*runtime, 100, "scratch");
        EXPECT_EQ(absl::IsResourceExhausted(scratch.status()), call == std::string("cudaMalloc"));
      }
      if (begun.ok()) {
        EXPECT_EQ(runtime->EndRecording().ok(), call == std::string("cudaMalloc"));
      }
      Fake().failing.clear();
      const auto array = DeviceArray<uint32_t>::Copy(*runtime, Counted(9, 3), "array");
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_TRUE(*array->ToHost() == Counted(9, 3));
    }
    EXPECT_TRUE(Fake().NothingLeft());
  }
}

TEST_F(CudaRuntimeTest, WhatIsFreeIsTheGpusAndThePools) {
  const auto runtime = Make();
  Fake().memory = size_t{100} << 20;
  const auto some = DeviceArray<std::byte>::Make(*runtime, size_t{30} << 20, "weights");
  ASSERT_TRUE(some.ok());
  Fake().kept = size_t{50} << 20;
  EXPECT_EQ(runtime->FreeBytes(), int64_t{70} << 20);
  Fake().failing = "cudaMemPoolGetAttribute";
  EXPECT_EQ(runtime->FreeBytes(), 0) << "nobody knows";
}

// Streams belong to a device, and which one is current belongs to a thread.
TEST_F(CudaRuntimeTest, ItsDeviceIsCurrentBeforeALaunch) {
  Fake().devices = 3;
  const auto runtime = MakeCudaRuntime({.index = 2, .architecture = 90});
  ASSERT_TRUE(runtime.ok());
  Fake().current_device = 0;
  EXPECT_NE((*runtime)->stream(), nullptr);
  EXPECT_EQ(Fake().current_device, 2);
  Fake().current_device = 0;
  ASSERT_TRUE(DeviceArray<int>::Copy(**runtime, std::vector<int>{1}, "x").ok());
  EXPECT_EQ(Fake().current_device, 2);
}

TEST_F(CudaRuntimeTest, DevicesAreFoundOrNamed) {
  Fake().devices = 2;
  const auto found = FindCudaDevice("cuda:1");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->index, 1);
  EXPECT_EQ(found->architecture, 90);
  EXPECT_EQ(FindCudaDevice("cuda")->index, 0);
  EXPECT_EQ(FindCudaDevice("cuda:2").status().message(),
            "--device cuda:2: found 2 GPUs; expected cuda:N with N below that");
  EXPECT_THAT(std::string(FindCudaDevice("gpu").status().message()),
              HasSubstr("--device gpu: no such device; expected"));
  EXPECT_EQ(found->max_shared_bytes, 232448u);
  Fake().max_shared_bytes = 101376;
  const auto small = FindCudaDevice("cuda");
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ((*MakeCudaRuntime(*small))->MaxSharedBytes(), 101376u);
  Fake().architecture = 80;
  const absl::Status other = FindCudaDevice("cuda").status();
  EXPECT_EQ(ExitCodeFor(other), kExitUnavailable);
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("--device cuda: a GPU of compute capability 8.0; this build has kernels for"));
}

TEST_F(CudaRuntimeTest, HostsWithoutAGpuAreToldWhatIsMissing) {
  Fake().count_error = cudaErrorInsufficientDriver;
  Fake().driver = 0;
  const absl::Status none = FindCudaDevice("cuda").status();
  EXPECT_EQ(ExitCodeFor(none), kExitUnavailable);
  EXPECT_EQ(none.message(),
            fmt::format("--device cuda: found no NVIDIA driver (CUDA driver version is insufficient for "
                        "CUDA runtime version); expected a GPU and a driver for CUDA {}.{} or later; use "
                        "--device cpu",
                        CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
  Fake().driver = 12040;
  EXPECT_THAT(std::string(FindCudaDevice("cuda").status().message()), HasSubstr("found a driver for CUDA 12.4 ("));
  Fake().count_error = cudaErrorNoDevice;
  EXPECT_THAT(std::string(FindCudaDevice("cuda:0").status().message()),
              HasSubstr("no CUDA-capable device is detected"));
}

// Code for "90a" is for 9.0 alone, code for 80 for 8.0 and later 8.x.
TEST(CudaArchitectures, WhichGpusRunWhichCode) {
  const struct {
    int gpu;
    const char* built;
    bool runs;
  } cases[] = {{90, "90a", true},      {100, "90a", false},  {89, "90a", false}, {80, "80", true},
               {86, "80", true},       {75, "80", false},    {90, "80", false},  {90, "80,90a", true},
               {86, "80,90a", true},   {103, "100a", false}, {103, "100", true}, {120, "100", false},
               {120, "90a,120", true}, {9, "90a", false}};
  for (const auto& c : cases) {
    EXPECT_EQ(CheckArchitecture("cuda", c.gpu, c.built).ok(), c.runs) << c.gpu << " with " << c.built;
  }
  EXPECT_EQ(CheckArchitecture("cuda:1", 80, "90a").message(),
            "--device cuda:1: a GPU of compute capability 8.0; this build has kernels for 90a; configure it with "
            "-DIHA_CUDA_ARCHITECTURES=80, or use --device cpu");
}

}  // namespace
}  // namespace iha::model
