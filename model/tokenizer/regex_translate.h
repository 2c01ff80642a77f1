// regex_translate.h: Oniguruma patterns (as tokenizer.json holds them) rewritten for PCRE2 with the same meaning.
//
// What differs and is rewritten: \s \w \d \h \b and POSIX brackets take Oniguruma's Unicode sets; \p{Han} means the
// script, not its extensions; [a[bc]], && in classes; (?m) is "dot takes newlines"; X{n,m}+ repeats, {,m} counts from
// 0;
// (?i) in the middle of a group binds the alternatives after it; ^ and $ match at lines. Literals are escaped.
// InvalidArgument for what has no counterpart (callouts, absent operators, \y, extended mode, raw high bytes); the
// message says what and where. Pure; thread: any.
// The result is meant for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE with LF as the only newline.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::tokenizer {

absl::StatusOr<std::string> TranslateOniguruma(std::string_view pattern);

}  // namespace iha::tokenizer
