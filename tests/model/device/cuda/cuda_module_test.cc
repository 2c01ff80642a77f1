// The CUDA module as programs load it; without a GPU, up to the line that says so.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.h"
#include "common/module_path.h"
#include "model/backend_module.h"
#include "model/open_model.h"

namespace iha::model {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Loading it needs neither a GPU nor a driver nor a toolkit.
TEST(CudaModule, Loads) {
  const auto module = LoadBackendModule("cuda");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->abi, kBackendModuleAbi);
  ASSERT_NE((*module)->architecture, nullptr);
  ASSERT_NE((*module)->open, nullptr);
  EXPECT_EQ(*LoadBackendModule("cuda"), *module);
}

TEST(CudaModule, DevicesThatAreNotThereAreOneLine) {
  const auto module = LoadBackendModule("cuda");
  ASSERT_TRUE(module.ok()) << module.status();
  for (const char* device : {"cuda:127", "cuda:x", "gpu", "cpu"}) {  // no host has so many
    const absl::Status status = (*module)->architecture(device).status();
    EXPECT_EQ(ExitCodeFor(status), kExitUnavailable) << device;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(std::string("--device ") + device + ": "));
    EXPECT_THAT(message, HasSubstr("expected"));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
  // The same from open, which is what programs call with a checkpoint at hand.
  const absl::Status opened =
      (*module)->open({.device = "cuda:127", .numerics = CudaNumerics("cuda-exact-sm_90")}).status();
  EXPECT_EQ(ExitCodeFor(opened), kExitUnavailable);
  EXPECT_EQ(opened.message(), (*module)->architecture("cuda:127").status().message());
}

// What a worker offers: here and with the numerics of a host that has a GPU.
TEST(CudaModule, NumericsOfADevice) {
  const auto none = NumericsOn("cuda:127");
  EXPECT_EQ(ExitCodeFor(none.status()), kExitUnavailable);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("--device cuda:127: "));
  EXPECT_THAT(std::string(NumericsOn("tpu").status().message()),
              HasSubstr("--device tpu: no such device; expected cpu, emulated, cuda or cuda:N"));
  const auto cpu = NumericsOn("cpu"), emulated = NumericsOn("emulated");
  ASSERT_TRUE(cpu.ok() && emulated.ok());
  EXPECT_THAT(*cpu, ::testing::Contains(NumericsSpec{}));
  EXPECT_THAT(*emulated, ::testing::ElementsAre(EmulatedNumerics(), EmulatedFastNumerics()));
}

// Where LibTorch's CUDA part, or what that loads in turn, is not there: one line that names the device.
TEST(CudaModule, FastNumericsOfADeviceThatIsNotThere) {
  const absl::Status status = CudaFastBackendOn("cuda:127").status();
  EXPECT_EQ(ExitCodeFor(status), kExitUnavailable) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("--device cuda:127: "));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  EXPECT_THAT(std::string(CudaFastBackendOn("tpu").status().message()), HasSubstr("--device tpu: no such device"));
#ifdef IHA_HAVE_CUDA_FAST
  EXPECT_TRUE(FindBackendModule("cuda_fast").ok());
#endif
}

}  // namespace
}  // namespace iha::model
