#include "common/fault_point.h"

#include <string>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;

class FaultPointTest : public ::testing::Test {
 protected:
  ~FaultPointTest() override { ArmFaultPoints("").IgnoreError(); }
};

TEST_F(FaultPointTest, FailsTheNthHitOnce) {
  const testing::TempDir dir;
  ASSERT_TRUE(ArmFaultPoints("file.write.begin:error:2").ok());
  EXPECT_TRUE(WriteFileAtomic(dir.File("a"), "1").ok());
  const absl::Status status = WriteFileAtomic(dir.File("a"), "2");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("file.write.begin"));
  EXPECT_EQ(*ReadFile(dir.File("a")), "1");
  EXPECT_TRUE(WriteFileAtomic(dir.File("a"), "3").ok());
  ASSERT_TRUE(ArmFaultPoints("file.write.begin:internal").ok());
  EXPECT_EQ(WriteFileAtomic(dir.File("a"), "4").code(), absl::StatusCode::kInternal);
}

TEST_F(FaultPointTest, RefusesBadSpecs) {
  const auto message = [](const char* spec) { return std::string(ArmFaultPoints(spec).message()); };
  EXPECT_THAT(message("file.write.begn:kill"), HasSubstr("did you mean \"file.write.begin\"?"));
  EXPECT_THAT(message("file.write.begin"), HasSubstr("expected NAME:ACTION[:NTH]"));
  EXPECT_THAT(message("file.write.begin:explode"), HasSubstr("action explode"));
  EXPECT_THAT(message("file.write.begin:kill:0"), HasSubstr("expected an integer from 1"));
  EXPECT_THAT(message("file.write.begin:kill:1x"), HasSubstr("expected an integer from 1"));
  EXPECT_THAT(message("file.write.before_rename:error"), HasSubstr("cannot return an error"));
  EXPECT_THAT(message("file.write.begin:error,"), HasSubstr("expected NAME:ACTION[:NTH]"));
  EXPECT_TRUE(ArmFaultPoints("file.write.begin:error:9,file.write.after_rename:kill:9").ok());
}

TEST_F(FaultPointTest, NamesAreSortedAndUnique) {
  for (size_t i = 1; i < std::size(kFaultPoints); i++) EXPECT_LT(kFaultPoints[i - 1].name, kFaultPoints[i].name);
}

}  // namespace
}  // namespace iha
