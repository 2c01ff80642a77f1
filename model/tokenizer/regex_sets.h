// regex_sets.h: named character sets of Oniguruma as the inside of a PCRE2 bracket. Pure; thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace iha::tokenizer {

// Members of a set: what goes between [ and ], or between [^ and ] if `negated`.
struct CharSet {
  std::string items;
  bool negated = false;
};

// \s \S \w \W \d \D \h \H.
std::optional<CharSet> EscapeSet(char letter);
// The name inside \p{...}: general category (short or long), POSIX name, binary property or script, in any spelling
// ("^" in front negates). A name that is none of these comes back as a script for PCRE2 to judge.
CharSet PropertySet(std::string_view name);
// The name inside [:...:]; nullopt if there is no such bracket.
std::optional<CharSet> PosixSet(std::string_view name);

}  // namespace iha::tokenizer
