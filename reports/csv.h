// csv.h: RFC 4180 fields, read and written. Pure; thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::reports {

// Rows of fields; quotes, doubled quotes, line breaks inside quotes, CRLF and a UTF-8 byte order mark are understood;
// blank lines are skipped. InvalidArgument names the line of an unclosed quote or of text after a closing one.
absl::StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text);

// The field as CSV text, quoted only where it must be.
std::string QuoteCsv(std::string_view field);

}  // namespace iha::reports
