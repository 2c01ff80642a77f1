// plain_answers.h: the two metrics that need no notion of an answer: `exact` and `regex`.
//
// Pure, thread-safe. A pattern's work is bounded by counters, never by a clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::scoring {

// Without white space around it.
std::string_view Trimmed(std::string_view text);

// The first match of a PCRE2 pattern (UTF-8, "." is no newline): its first group if it has one, else all of it;
// nullopt: no match. InvalidArgument: not a pattern (says where), or one whose work on this text exceeds the limits.
absl::StatusOr<std::optional<std::string>> FirstMatch(std::string_view pattern, std::string_view text);

}  // namespace iha::scoring
