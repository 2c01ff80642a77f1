// unicode_additions.h: characters that Unicode 15 and 16 added, by general category (and script Han), as the inside of
// a PCRE2 bracket. Debian's PCRE2 10.42 knows Unicode 14, the tokenizers that we must equal know Unicode 16; where
// PCRE2 is newer the additions change nothing. Source: the Unicode Character Database, DerivedGeneralCategory and
// Scripts.
#pragma once

#include <string>
#include <string_view>

namespace iha::tokenizer {

// Of a general category of two letters, of all that begin with one letter, or of "Han"; "" if there are none.
std::string UnicodeAdditions(std::string_view category);

}  // namespace iha::tokenizer
