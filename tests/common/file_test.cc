#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/fault_point.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

int FilesIn(const std::string& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) count++;
  return count;
}

TEST(File, WritesAndReadsBack) {
  const testing::TempDir dir;
  const std::string path = dir.File("a");
  const std::string binary("x\0y\n", 4);
  ASSERT_TRUE(WriteFileAtomic(path, binary).ok());
  EXPECT_EQ(*ReadFile(path), binary);
  const std::string large(3'500'000, 'z');
  ASSERT_TRUE(WriteFileAtomic(path, large).ok());
  EXPECT_EQ(*ReadFile(path), large);
  ASSERT_TRUE(WriteFileAtomic(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
  EXPECT_EQ(FilesIn(dir.path()), 1);
}

TEST(File, KeepsTheModeOfTheFileItReplaces) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "1").ok());
  ASSERT_EQ(chmod(dir.File("a").c_str(), 0640), 0);
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "2").ok());
  struct stat info = {};
  ASSERT_EQ(stat(dir.File("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(File, ErrorsNamePathAndReason) {
  const testing::TempDir dir;
  const absl::Status missing = ReadFile(dir.File("nope")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(missing), dir.File("nope") + ": open: No such file or directory");
  EXPECT_EQ(ReadFile(dir.path()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomic(dir.File("no/such/folder"), "x").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(WriteFileAtomic(dir.path(), "x")), HasSubstr("is not a regular file"));
  EXPECT_EQ(LineReader::Open(dir.path()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(File, APipeIsNotWaitedForWhereARegularFileIsExpected) {
  const testing::TempDir dir;
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  for (const std::string& path : {dir.File("pipe"), dir.path(), std::string("/dev/null")}) {
    const absl::Status status = ReadRegularFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), HasSubstr(path + ": is no regular file"));
  }
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "12345").ok());
  EXPECT_EQ(*ReadRegularFile(dir.File("a"), 5), "12345");
  EXPECT_THAT(Message(ReadRegularFile(dir.File("a"), 4).status()), HasSubstr("expected at most 4"));
}

TEST(File, SizeLimit) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "12345").ok());
  EXPECT_EQ(*ReadFile(dir.File("a"), 5), "12345");
  const absl::Status status = ReadFile(dir.File("a"), 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("expected at most 4"));
  // /proc files say size 0 and still have bytes.
  EXPECT_THAT(*ReadFile("/proc/self/status"), HasSubstr("Pid:"));
  EXPECT_FALSE(ReadFile("/proc/self/status", 10).ok());
}

TEST(File, FullDiskSaysSo) {
  EXPECT_EQ(ErrnoStatus("f", "write", ENOSPC).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(ErrnoStatus("f", "write", ENOSPC)), HasSubstr("disk full"));
  EXPECT_EQ(ErrnoStatus("f", "write", EIO).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrnoStatus("f", "write", EACCES).code(), absl::StatusCode::kFailedPrecondition);
}

// A kill before the rename leaves the old bytes, after it the new ones; never a mixture.
TEST(FileDeathTest, CrashLeavesOldOrNew) {
  const testing::TempDir dir;
  const std::string path = dir.File("a");
  ASSERT_TRUE(WriteFileAtomic(path, "old").ok());
  const auto write_with = [&](const char* fault) {
    ASSERT_TRUE(ArmFaultPoints(fault).ok());
    WriteFileAtomic(path, "new").IgnoreError();
  };
  EXPECT_EXIT(write_with("file.write.before_rename:kill"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(*ReadFile(path), "old");
  // Nor a temporary file, where the file system has files without a name.
  if (const UniqueFd nameless(open(dir.path().c_str(), O_TMPFILE | O_WRONLY, 0600)); nameless.valid()) {
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), std::filesystem::directory_iterator()), 1);
  }
  EXPECT_EXIT(write_with("file.write.after_rename:kill"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(*ReadFile(path), "new");
}

TEST(File, MakesFolders) {
  const testing::TempDir dir;
  EXPECT_TRUE(MakeFolders(dir.File("a/b/c")).ok());
  EXPECT_TRUE(MakeFolders(dir.File("a/b/c")).ok());
  ASSERT_TRUE(WriteFileAtomic(dir.File("f"), "").ok());
  EXPECT_FALSE(MakeFolders(dir.File("f")).ok());
  EXPECT_FALSE(MakeFolders(dir.File("f/g")).ok());
}

TEST(File, LockIsExclusiveUntilDropped) {
  const testing::TempDir dir;
  {
    const auto held = FileLock::TryAcquire(dir.File("lock"));
    ASSERT_TRUE(held.ok());
    EXPECT_TRUE(held->has_value());
    const auto second = FileLock::TryAcquire(dir.File("lock"));
    ASSERT_TRUE(second.ok());
    EXPECT_FALSE(second->has_value());
  }
  EXPECT_TRUE(FileLock::TryAcquire(dir.File("lock"))->has_value());
  EXPECT_EQ(FileLock::TryAcquire(dir.File("absent/lock")).status().code(), absl::StatusCode::kNotFound);
}

TEST(LineReader, SplitsLinesAndCountsThem) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), std::string("one\r\n\n\0x\nlast", 13)).ok());
  absl::StatusOr<LineReader> reader = LineReader::Open(dir.File("a"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(**reader->Next(), "one");
  EXPECT_EQ(**reader->Next(), "");
  EXPECT_EQ(**reader->Next(), std::string("\0x", 2));
  EXPECT_EQ(**reader->Next(), "last");
  EXPECT_EQ(reader->Where(), dir.File("a") + ":4");
  EXPECT_EQ(*reader->Next(), std::nullopt);
  EXPECT_EQ(reader->line_number(), 4);
}

TEST(LineReader, ReadsATextAsAFile) {
  absl::StatusOr<LineReader> reader = LineReader::OfText("name", std::string("one\r\n\n\0x\nlast", 13));
  ASSERT_TRUE(reader.ok());
  LineReader moved = *std::move(reader);
  EXPECT_EQ(**moved.Next(), "one");
  EXPECT_EQ(**moved.Next(), "");
  EXPECT_EQ(**moved.Next(), std::string("\0x", 2));
  EXPECT_EQ(**moved.Next(), "last");
  EXPECT_EQ(moved.Where(), "name:4");
  EXPECT_EQ(*moved.Next(), std::nullopt);
  absl::StatusOr<LineReader> empty = LineReader::OfText("empty", "");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(*empty->Next(), std::nullopt);
}

TEST(LineReader, SkipsLinesOverTheLimit) {
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("a"), "12345\n1234\n").ok());
  absl::StatusOr<LineReader> reader = LineReader::Open(dir.File("a"), 4);
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(Message(reader->Next().status()), HasSubstr(dir.File("a") + ":1: line is longer than 4 bytes"));
  EXPECT_EQ(**reader->Next(), "1234");
  EXPECT_EQ(*reader->Next(), std::nullopt);
}

}  // namespace
}  // namespace iha
