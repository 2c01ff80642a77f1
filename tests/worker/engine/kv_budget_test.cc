#include "worker/engine/kv_budget.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace iha::engine {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class KvBudgetTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = dir_.File(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void Machine(int64_t available) {
    Write("proc/meminfo", "MemTotal:       " + std::to_string(available / 512) +
                              " kB\nMemFree:        1 kB\nMemAvailable:   " + std::to_string(available / 1024) +
                              " kB\nHugePages_Total:       0\n");
  }
  int64_t Budget() const { return DefaultKvBytes(dir_.path() + "/"); }

  testing::TempDir dir_;
};

TEST_F(KvBudgetTest, IsAQuarterOfWhatTheMachineHasFree) {
  EXPECT_EQ(Budget(), 1024 * kMiB) << "nothing is said";
  Machine(8000 * kMiB);
  EXPECT_EQ(Budget(), 2000 * kMiB);
  EXPECT_EQ(DefaultKvBytes(dir_.path() + "/", 4), 500 * kMiB) << "four workers at once";
  Machine(100 * kMiB);
  EXPECT_EQ(Budget(), 256 * kMiB);
  Machine(int64_t{1024} * 1024 * kMiB);
  EXPECT_EQ(Budget(), 8192 * kMiB);
}

TEST(DeviceKvBudget, IsAQuarterOfWhatTheDeviceHasLeft) {
  EXPECT_EQ(DeviceKvBytes(int64_t{130} << 30), int64_t{130} << 28) << "no upper end";
  EXPECT_EQ(DeviceKvBytes(int64_t{128} << 30, 4), int64_t{8} << 30) << "four workers at once";
  EXPECT_EQ(DeviceKvBytes(100 * kMiB), 256 * kMiB);
}

TEST_F(KvBudgetTest, IsAQuarterOfWhatTheContainerHasLeft) {
  Machine(64000 * kMiB);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/fs/cgroup/memory.current", std::to_string(500 * kMiB) + "\n");
  EXPECT_EQ(Budget(), 8192 * kMiB) << "no limit";
  Write("sys/fs/cgroup/memory.max", std::to_string(4500 * kMiB) + "\n");
  EXPECT_EQ(Budget(), 1000 * kMiB);
  Write("sys/fs/cgroup/memory.stat", "anon 7\ninactive_anon 9\ninactive_file " + std::to_string(400 * kMiB) + "\n");
  EXPECT_EQ(Budget(), 1100 * kMiB) << "pages of files can be dropped";
  Machine(2000 * kMiB);
  EXPECT_EQ(Budget(), 500 * kMiB) << "the machine has less";
}

TEST_F(KvBudgetTest, CountsEveryCgroupAboveTheProcess) {
  Machine(64000 * kMiB);
  Write("proc/self/cgroup", "0::/slurm/job_5/step_0\n");
  Write("sys/fs/cgroup/slurm/job_5/memory.max", std::to_string(6000 * kMiB) + "\n");
  Write("sys/fs/cgroup/slurm/job_5/memory.current", std::to_string(2000 * kMiB) + "\n");
  Write("sys/fs/cgroup/slurm/job_5/step_0/memory.max", std::to_string(9000 * kMiB) + "\n");
  Write("sys/fs/cgroup/slurm/job_5/step_0/memory.current", std::to_string(1000 * kMiB) + "\n");
  EXPECT_EQ(Budget(), 1000 * kMiB);
}

TEST_F(KvBudgetTest, ReadsVersionOneToo) {
  Machine(64000 * kMiB);
  Write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/host/container\n1:cpu:/\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(5000 * kMiB) + "\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(2000 * kMiB) + "\n");
  Write("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file " + std::to_string(1000 * kMiB) + "\n");
  EXPECT_EQ(Budget(), 1000 * kMiB) << "the host's path is not mounted: the mount point is the container's cgroup";
}

}  // namespace
}  // namespace iha::engine
