// The folder of a run's socket: gone with the run, or with the next one.
#include "cli/run/socket_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace iha::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempDir;

std::vector<std::string> Inside(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().string());
  return names;
}

// Makes a folder with something in it in a process that ends without cleaning up.
void LeaveBehind(const std::string& parent, const std::string& file) {
  const pid_t child = fork();
  if (child == 0) {
    const auto folder = SocketFolder::Make(parent);
    if (folder.ok()) std::ofstream((*folder)->path() + "/" + file) << "x";
    _exit(folder.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(SocketFolder, IsPrivateAndGoesWithItsOwner) {
  const TempDir dir;
  {
    const auto folder = SocketFolder::Make(dir.path());
    ASSERT_TRUE(folder.ok()) << folder.status();
    struct stat info {};
    ASSERT_EQ(stat((*folder)->path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    EXPECT_EQ((*folder)->Address(), "unix:" + (*folder)->path() + "/coordinator.sock");
    std::ofstream((*folder)->path() + "/coordinator.sock") << "x";
  }
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(SocketFolder, FoldersOfDeadRunsAreRemovedAndNoOthers) {
  const TempDir dir;
  LeaveBehind(dir.path(), "coordinator.sock");
  EXPECT_EQ(Inside(dir.path()).size(), 1u);
  const auto alive = SocketFolder::Make(dir.path());
  ASSERT_TRUE(alive.ok()) << alive.status();
  EXPECT_EQ(Inside(dir.path()), std::vector<std::string>{(*alive)->path()});
  // What holds anything else is not a run's socket folder, whatever its name.
  fs::create_directories(dir.File("iha-eval-run-mine"));
  std::ofstream(dir.File("iha-eval-run-mine") + "/notes") << "x";
  fs::create_directories(dir.File("iha-eval-other"));
  fs::create_directory_symlink(dir.File("iha-eval-other"), dir.File("iha-eval-run-link"));
  const auto second = SocketFolder::Make(dir.path());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(fs::exists((*alive)->path()));
  EXPECT_TRUE(fs::exists(dir.File("iha-eval-run-mine") + "/notes"));
  EXPECT_TRUE(fs::exists(dir.File("iha-eval-other")));
  EXPECT_TRUE(fs::is_symlink(fs::symlink_status(dir.File("iha-eval-run-link"))));
}

TEST(SocketFolder, AParentThatIsTooLongOrAbsentIsNamed) {
  const TempDir dir;
  const std::string deep = dir.File(std::string(100, 'd'));
  fs::create_directories(deep);
  const absl::Status too_long = SocketFolder::Make(deep).status();
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_long.message()), HasSubstr("set TMPDIR"));
  EXPECT_THAT(std::string(SocketFolder::Make(dir.File("none")).status().message()), HasSubstr("none/iha-eval-run-"));
}

}  // namespace
}  // namespace iha::cli
