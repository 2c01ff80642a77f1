// All tests of this program need a GPU that the build has kernels for; elsewhere they say so.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

namespace iha {
namespace {

class Gpu : public ::testing::Environment {
 public:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
  }
};

// Belongs to the test program from here on.
[[maybe_unused]] ::testing::Environment* const kGpu = ::testing::AddGlobalTestEnvironment(new Gpu);

}  // namespace
}  // namespace iha
