#include "common/errors.h"

#include "common/status_macros.h"
#include "gtest/gtest.h"

namespace iha {
namespace {

TEST(Errors, ExitCodePerClass) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(InvalidArgument("x")), 3);
  EXPECT_EQ(ExitCodeFor(DataLoss("x")), 3);
  EXPECT_EQ(ExitCodeFor(NotFound("x")), 3);
  EXPECT_EQ(ExitCodeFor(FailedPrecondition("x")), 3);
  EXPECT_EQ(ExitCodeFor(absl::UnauthenticatedError("x")), 3);
  EXPECT_EQ(ExitCodeFor(Unavailable("x")), 4);
  EXPECT_EQ(ExitCodeFor(DeadlineExceeded("x")), 4);
  EXPECT_EQ(ExitCodeFor(ResourceExhausted("x")), 4);
  EXPECT_EQ(ExitCodeFor(Aborted("x")), 4);
  EXPECT_EQ(ExitCodeFor(Internal("x")), 70);
  EXPECT_EQ(ExitCodeFor(absl::UnknownError("x")), 70);
}

TEST(Errors, FormatsAndAnnotates) {
  const absl::Status status = InvalidArgument("{}: found {}, expected {}", "f", 1, "two");
  EXPECT_EQ(status.message(), "f: found 1, expected two");
  const absl::Status outer = Annotate(status, "config.json");
  EXPECT_EQ(outer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(outer.message(), "config.json: f: found 1, expected two");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

absl::StatusOr<std::string> Twice(absl::StatusOr<std::string> in) {
  IHA_ASSIGN_OR_RETURN(const std::string value, std::move(in));
  IHA_RETURN_IF_ERROR(value.empty() ? InvalidArgument("empty") : absl::OkStatus());
  return value + value;
}

TEST(Errors, MacrosPassValuesAndReturnErrors) {
  EXPECT_EQ(*Twice(std::string("a")), "aa");
  EXPECT_EQ(Twice(std::string()).status().message(), "empty");
  EXPECT_EQ(Twice(Aborted("gone")).status(), Aborted("gone"));
}

}  // namespace
}  // namespace iha
