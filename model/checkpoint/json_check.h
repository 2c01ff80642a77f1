// json_check.h: is a text one JSON value, unambiguous and shallow? Asked before it is parsed. Private to this folder.
//
// Refused: a byte order mark, zero bytes, syntax errors, text after the value, NaN and Infinity (which Python writes),
// numbers that overflow, an object that names a field twice (readers disagree about which one counts), nesting deeper
// than the limit (printing recurses) and arrays longer than it. Errors are InvalidArgument, one line, with line, column
// and the path of the field. Memory: the names of the open objects. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace iha::checkpoint {

inline constexpr size_t kMaxCheckedDepth = 64;

struct JsonLimits {
  size_t depth = kMaxCheckedDepth;
  size_t list = SIZE_MAX;  // values of one array
};

// `file` begins the message.
absl::Status CheckJson(std::string_view text, std::string_view file, const JsonLimits& limits = {});

}  // namespace iha::checkpoint
