// LibTorch's own caching allocator as the runtime's memory, over what stands in for CUDA's runtime (fake_cudart.h): one
// cache for the backend and the library, recordings that keep their addresses, what is given back before there is none.
#include "model/device/cuda/torch_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/device/cuda/cuda_runtime.h"
#include "tests/model/device/cuda/fake_cudart.h"

// What LibTorch's CUDA part tells its guards when it is loaded; none of its headers has it.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(DeviceIndex));
}

namespace iha::model {
namespace {

using testing::Fake;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kMiB = size_t{1} << 20;

// Takes what a tensor of so many bytes would, in the current stream, and lets go of it.
class TakingLibrary final : public DeviceFast {
 public:
  explicit TakingLibrary(TorchMemory& memory) : memory_(memory) {}
  uint32_t processors() const override { return 1; }
  absl::StatusOr<bool> Matmul(const kernels::MatmulGpuArgs& args) override {
    return memory_.Run("product", [&] {
      const c10::cuda::CUDAStreamGuard stream(memory_.stream());
      last = c10::cuda::CUDACachingAllocator::raw_alloc(args.m * kMiB);
      c10::cuda::CUDACachingAllocator::raw_delete(last);
      return true;
    });
  }
  absl::StatusOr<bool> CausalAttention(const Prompt& /*prompt*/) override { return false; }

  void* last = nullptr;

 private:
  TorchMemory& memory_;
};

class TorchMemoryTest : public ::testing::Test {
 protected:
  TorchMemoryTest() {
    testing::ResetFake();
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::CUDACachingAllocator::init(1);
    Fake().memory = 100 * kMiB;
  }
  ~TorchMemoryTest() override {
    EXPECT_THAT(Fake().mistakes, ::testing::IsEmpty());
    runtime_ = nullptr;
    EXPECT_TRUE(Fake().NothingLeft()) << Fake().device_memory.size() << " allocations";
  }

  DeviceRuntime& Make() {
    auto made = MakeCudaRuntime({.index = 0, .architecture = 90}, [&](const CudaDevice& device, cudaStream_t stream) {
      auto memory = std::make_unique<TorchMemory>(device.index, stream, c10::MempoolId_t{0, 7});
      auto library = std::make_unique<TakingLibrary>(*memory);
      library_ = library.get();
      return absl::StatusOr<CudaFast>(CudaFast{.memory = std::move(memory), .fast = std::move(library)});
    });
    EXPECT_TRUE(made.ok()) << made.status();
    runtime_ = *std::move(made);
    return *runtime_;
  }
  static DeviceArray<char> Array(DeviceRuntime& runtime, size_t mib) {
    auto array = DeviceArray<char>::Make(runtime, mib * kMiB, "array");
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? *std::move(array) : DeviceArray<char>();
  }
  absl::StatusOr<bool> Product(uint32_t mib) { return library_->Matmul({.m = mib}); }

  std::unique_ptr<DeviceRuntime> runtime_;
  TakingLibrary* library_ = nullptr;
};

TEST_F(TorchMemoryTest, WhatOneHasFreedServesTheOther) {
  DeviceRuntime& runtime = Make();
  const void* ours = Array(runtime, 60).data();
  ASSERT_TRUE(Product(60).ok());
  EXPECT_EQ(library_->last, ours);
  EXPECT_EQ(Array(runtime, 60).data(), ours);
  EXPECT_EQ(Fake().calls["cudaMalloc"], 1);
  // Of another size: what is kept for nobody goes back first.
  EXPECT_NE(Array(runtime, 90).data(), nullptr);
  EXPECT_TRUE(Product(40).ok());
  EXPECT_NE(Array(runtime, 0).data(), nullptr);
}

TEST_F(TorchMemoryTest, ValuesGoUpAndComeDown) {
  DeviceRuntime& runtime = Make();
  std::vector<uint32_t> values(3'000'000);
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<uint32_t>(i * 2654435761u);
  const auto array = DeviceArray<uint32_t>::Copy(runtime, values, "values");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_TRUE(*array->ToHost() == values);
}

// Ours and the library's, each recording the same; nothing else is ever given it.
TEST_F(TorchMemoryTest, RecordingsShareMemoryOfTheirOwn) {
  DeviceRuntime& runtime = Make();
  const void* eager = Array(runtime, 20).data();
  std::vector<const void*> first;
  for (int i = 0; i < 3; i++) {
    ASSERT_TRUE(runtime.BeginRecording().ok());
    std::vector<const void*> places;
    {
      const auto one = Array(runtime, 20), two = Array(runtime, 1);
      ASSERT_TRUE(Product(12).ok());
      places = {one.data(), two.data(), library_->last};
    }
    ASSERT_TRUE(runtime.EndRecording().ok());
    EXPECT_THAT(places, Not(::testing::Contains(eager)));
    if (i == 0) first = places;
    EXPECT_EQ(places, first);
    EXPECT_EQ(Array(runtime, 20).data(), eager);
    EXPECT_NE(Array(runtime, 12).data(), first[2]);
  }
  // Not for want of memory, either.
  EXPECT_EQ(DeviceArray<char>::Make(runtime, 70 * kMiB, "much").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(TorchMemoryTest, ARecordingGetsWhatIsKeptForNobody) {
  DeviceRuntime& runtime = Make();
  Array(runtime, 80);
  ASSERT_TRUE(runtime.BeginRecording().ok());
  {
    const auto scratch = Array(runtime, 50);
    const absl::Status none = DeviceArray<char>::Make(runtime, 60 * kMiB, "scratch").status();
    EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(none.message(), "scratch of 60 MiB: out of memory of the GPU (50 of 100 MiB free)");
  }
  EXPECT_TRUE(runtime.EndRecording().ok());
  Array(runtime, 40);
  ASSERT_TRUE(runtime.BeginRecording().ok());
  EXPECT_TRUE(Product(45).ok()) << "of what the recording before has";
  {
    const auto scratch = Array(runtime, 50);
    EXPECT_TRUE(Product(30).ok()) << "of what is kept for steps that are not recorded";
    EXPECT_EQ(Product(60).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(runtime.EndRecording().ok());
}

// Then the step runs unrecorded, which a fault would not let it.
TEST_F(TorchMemoryTest, WhereNothingCanBeGivenBackARecordingHasNoMemory) {
  DeviceRuntime& runtime = Make();
  Array(runtime, 80);
  ASSERT_TRUE(runtime.BeginRecording().ok());
  Fake().failing = "cudaFree";
  EXPECT_EQ(DeviceArray<char>::Make(runtime, 50 * kMiB, "scratch").status().code(),
            absl::StatusCode::kResourceExhausted);
  Fake().failing.clear();
  EXPECT_TRUE(runtime.EndRecording().ok());
  EXPECT_NE(Array(runtime, 50).data(), nullptr);
}

TEST_F(TorchMemoryTest, WhatIsFreeIsTheGpusAndTheCaches) {
  DeviceRuntime& runtime = Make();
  const auto weights = Array(runtime, 30);
  EXPECT_EQ(runtime.FreeBytes(), static_cast<int64_t>(70 * kMiB));
  Array(runtime, 24);
  EXPECT_EQ(Fake().used, 54 * kMiB);
  EXPECT_EQ(runtime.FreeBytes(), static_cast<int64_t>(70 * kMiB));
  ASSERT_TRUE(runtime.BeginRecording().ok());
  Array(runtime, 20);
  ASSERT_TRUE(runtime.EndRecording().ok());
  EXPECT_EQ(runtime.FreeBytes(), static_cast<int64_t>(50 * kMiB)) << "what a recording has is nobody else's";
}

TEST_F(TorchMemoryTest, FaultsAreOneLine) {
  DeviceRuntime& runtime = Make();
  Fake().failing = "cudaMalloc";
  Fake().error = cudaErrorIllegalAddress;
  const absl::Status status = DeviceArray<char>::Make(runtime, 30 * kMiB, "array").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("array: LibTorch: CUDA error: an illegal memory access"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

// A second runtime of a process begins with all of the memory.
TEST_F(TorchMemoryTest, NothingStaysBehindARuntime) {
  for (int i = 0; i < 2; i++) {
    DeviceRuntime& runtime = Make();
    ASSERT_TRUE(runtime.BeginRecording().ok());
    Array(runtime, 40);
    ASSERT_TRUE(runtime.EndRecording().ok());
    Array(runtime, 50);
    runtime_ = nullptr;
    EXPECT_TRUE(Fake().NothingLeft());
  }
}

}  // namespace
}  // namespace iha::model
