// hendrycks.h: the MATH graders of Hendrycks et al., as lm-evaluation-harness 0.4.13 runs them (hendrycks_math), bug
// for bug (metric math.hendrycks; protocols.md section 2).
//
// All texts are UTF-8 and "characters" are code points, as in that Python code. Pure, thread-safe, linear time. What
// raises there is nullopt here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace iha::scoring {

// The normal form that answers are compared in; nullopt where that code raises (two unit texts, a bare \frac or \sqrt
// at the end, one slash between things that are no integers).
std::optional<std::string> HendrycksStrip(std::string_view answer);

// Equal normal forms; when either raises, equal texts.
bool HendrycksEquivalent(std::string_view a, std::string_view b);

// What the task takes for the answer: between the first and the last "$"; the whole output when there are fewer than 2.
std::string_view HendrycksAnswer(std::string_view output);

// The last \boxed{...} (or \fbox{...}) with its braces balanced. A "\boxed " anywhere wins: the text behind the last
// one up to a "$". nullopt when there is none or its braces do not balance.
std::optional<std::string> LastBoxed(std::string_view text);

// The inside of what LastBoxed gives; nullopt where that code asserts (an \fbox).
std::optional<std::string> RemoveBoxed(std::string_view boxed);

}  // namespace iha::scoring
