// errors.h: absl::Status values with formatted messages, and the process exit code of each class (DESIGN section 9).
//
// A message is one line: what (file, field, flag), found, expected, what to do. Codes are actions (style.md 3.6):
//   InvalidArgument, DataLoss   bad input: fail fast, no retry                 -> exit 3
//   NotFound                    a named file or thing is absent                -> exit 3
//   Unavailable, DeadlineExceeded, ResourceExhausted, Aborted   try again      -> exit 4
//   FailedPrecondition          stop, something must be fixed first            -> exit 3
//   Unauthenticated             the token is missing or wrong                  -> exit 3
//   Internal, anything else     our bug                                        -> exit 70
//
// Debian's Abseil has its own absl::string_view, so format with fmt, not StrCat, wherever std::string_view is at hand.
#pragma once

#include <fmt/format.h>

#include <string>

#include "absl/status/status.h"

namespace iha {

enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 2,
  kExitBadInput = 3,
  kExitUnavailable = 4,
  kExitCheckFailed = 5,
  kExitInconclusive = 6,
  kExitInternal = 70,
};
ExitCode ExitCodeFor(const absl::Status& status);

// "old message" -> "prefix: old message", same code. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view prefix);

#define IHA_DEFINE_ERROR_(Name, code)                                              \
  template <class... Args>                                                         \
  [[nodiscard]] absl::Status Name(fmt::format_string<Args...> f, Args&&... args) { \
    return absl::Status(code, fmt::format(f, std::forward<Args>(args)...));        \
  }
IHA_DEFINE_ERROR_(InvalidArgument, absl::StatusCode::kInvalidArgument)
IHA_DEFINE_ERROR_(DataLoss, absl::StatusCode::kDataLoss)
IHA_DEFINE_ERROR_(NotFound, absl::StatusCode::kNotFound)
IHA_DEFINE_ERROR_(Unavailable, absl::StatusCode::kUnavailable)
IHA_DEFINE_ERROR_(DeadlineExceeded, absl::StatusCode::kDeadlineExceeded)
IHA_DEFINE_ERROR_(ResourceExhausted, absl::StatusCode::kResourceExhausted)
IHA_DEFINE_ERROR_(Aborted, absl::StatusCode::kAborted)
IHA_DEFINE_ERROR_(AlreadyExists, absl::StatusCode::kAlreadyExists)
IHA_DEFINE_ERROR_(FailedPrecondition, absl::StatusCode::kFailedPrecondition)
IHA_DEFINE_ERROR_(Unimplemented, absl::StatusCode::kUnimplemented)
IHA_DEFINE_ERROR_(Internal, absl::StatusCode::kInternal)
#undef IHA_DEFINE_ERROR_

}  // namespace iha
