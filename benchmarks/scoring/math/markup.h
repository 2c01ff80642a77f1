// markup.h: how chat models and plain text dress an answer, rewritten to LaTeX ahead of clean.h.
//
// Bold marks, remarks in brackets, "approximately", "plus or minus", currencies of several letters, the ways to write
// repeating digits. Pure; linear; a text without any of them comes back as it is.
#pragma once

#include <string>
#include <string_view>

namespace iha::scoring::math {

std::string PlainMarkup(std::string_view text);

// A part of it: "k\pi \text{ where } k \text{ is an integer}" and "k\pi (k \in \mathbb{Z})" as "k\pi, k \in
// \mathbb{Z}"; "for some constant c" goes. What is said otherwise stays.
void DomainsAsList(std::string& text);

}  // namespace iha::scoring::math
