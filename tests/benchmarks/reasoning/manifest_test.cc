// Checked data files: digests, errors, importing.
#include "benchmarks/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Folder {
 public:
  Folder()
      : path_(fs::path(::testing::TempDir()) /
              ("manifest_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

void Write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Manifest, MissingRootAndMissingFileSayHowToImport) {
  const auto no_root = ReadDataFile("", "gsm8k/test.jsonl");
  EXPECT_EQ(no_root.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(no_root.status().message()), HasSubstr("data import --from"));
  Folder folder;
  const auto missing = ReadDataFile(folder.path(), "gsm8k/test.jsonl");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("gsm8k/test.jsonl"));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("data import --from"));
}

TEST(Manifest, ChangedFileIsDataLossWithBothDigests) {
  Folder folder;
  Write(folder / "gsm8k/test.jsonl", "{}\n");
  const auto changed = ReadDataFile(folder.path(), "gsm8k/test.jsonl");
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kDataLoss);
  const std::string message(changed.status().message());
  EXPECT_THAT(message, HasSubstr(Sha256Of("{}\n").Hex()));
  EXPECT_THAT(message, HasSubstr(std::string(FindDataFile("gsm8k/test.jsonl")->sha256)));
  EXPECT_THAT(message, HasSubstr("data import --from"));
}

TEST(Manifest, ImportRefusesUnknownAndChangedFiles) {
  Folder folder;
  Write(folder / "in/notes.txt", "x");
  EXPECT_EQ(ImportData(folder / "in/notes.txt", folder / "out").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportData(folder / "in", folder / "out").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportData(folder / "absent", folder / "out").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ImportData(folder / "in", "").status().code(), absl::StatusCode::kInvalidArgument);
  Write(folder / "in/grade_school_math/data/test.jsonl", "x");
  EXPECT_EQ(ImportData(folder / "in", folder / "out").status().code(), absl::StatusCode::kDataLoss);
  Write(folder / "flat/test.jsonl", "x");
  EXPECT_EQ(ImportData(folder / "flat", folder / "out").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(fs::exists(folder / "out"));  // nothing half-written
}

TEST(Manifest, ImportsPublisherLayoutFlatFolderAndSingleFile) {
  IHA_REQUIRE_DATA(data);
  Folder folder;
  const std::string original = data + "/gsm8k/test.jsonl";
  fs::create_directories(folder / "clone/grade_school_math/data");
  fs::copy(original, folder / "clone/grade_school_math/data/test.jsonl");
  fs::create_directories(folder / "flat");
  fs::copy(data + "/gsm8k/train.jsonl", folder / "flat/train.jsonl");

  const auto first = ImportData(folder / "clone", folder / "root");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ(first->front().path, "gsm8k/test.jsonl");
  EXPECT_FALSE(first->front().already_present);
  const auto again = ImportData(original, folder / "root");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->front().already_present);
  const auto flat = ImportData(folder / "flat", folder / "root");
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_TRUE(ReadDataFile(folder / "root", "gsm8k/test.jsonl").ok());
  EXPECT_TRUE(ReadDataFile(folder / "root", "gsm8k/train.jsonl").ok());
  Write(folder / "root/gsm8k/train.jsonl", "damaged");
  EXPECT_FALSE(ReadDataFile(folder / "root", "gsm8k/train.jsonl").ok());
  EXPECT_TRUE(ImportData(folder / "flat", folder / "root").ok());  // repairs
  EXPECT_TRUE(ReadDataFile(folder / "root", "gsm8k/train.jsonl").ok());
}

TEST(Manifest, EveryFileOfTheDataRootMatches) {
  IHA_REQUIRE_DATA(data);
  for (const DataFile& file : DataManifest()) {
    const auto bytes = ReadDataFile(data, file.path);
    EXPECT_TRUE(bytes.ok() || (file.optional && absl::IsNotFound(bytes.status()))) << bytes.status();
  }
}

}  // namespace
}  // namespace iha::benchmarks
