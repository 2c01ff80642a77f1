#include "common/bus_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/support/temp_dir.h"

namespace iha {
namespace {

TEST(BusErrorDeathTest, AFileThatIsTruncatedWhileItIsReadIsNamed) {
  const iha::testing::TempDir dir;
  const std::string path = dir.File("weights \x1b.bin");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  constexpr size_t kSize = 1 << 16;
  ASSERT_EQ(ftruncate(fd, kSize), 0);
  void* data = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(data, MAP_FAILED);
  ASSERT_EQ(ftruncate(fd, 0), 0);
  const volatile char* bytes = static_cast<const char*>(data);
  EXPECT_EXIT(
      {
        ExplainBusErrors();
        _exit(bytes[kSize / 2]);
      },
      ::testing::ExitedWithCode(3), "^[^\n]*: [^\n]*weights \\?\\.bin: lost bytes while it was read[^\n]*\n$");
  munmap(data, kSize);
  close(fd);
}

TEST(BusErrorDeathTest, ASignalOfAnotherCauseStaysOne) {
  EXPECT_EXIT(
      {
        ExplainBusErrors();
        raise(SIGBUS);
        _exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace iha
