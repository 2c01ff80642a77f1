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
    // By itself GoogleTest 1.12 counts what it left out for an environment's sake as passed; ctest looks for this mark.
    if (error != cudaSuccess || count == 0) GTEST_SKIP() << "[  SKIPPED ] no GPU: " << cudaGetErrorString(error);
  }
};

// Belongs to the test program from here on.
[[maybe_unused]] ::testing::Environment* const kGpu = ::testing::AddGlobalTestEnvironment(new Gpu);

}  // namespace
}  // namespace iha
