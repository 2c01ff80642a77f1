// extract_shape.h: what a piece of text consists of: words of prose, digits, marks of mathematics. Pure; linear.
#pragma once

#include <cstddef>
#include <string_view>

namespace iha::scoring::math {

struct Shape {
  size_t prose = 0;  // words
  size_t words = 0;
  bool digits = false;
  bool formula = false;  // marks of mathematics
};

// Looks at the words outside of commands and \text{...}.
Shape ShapeOf(std::string_view text);

// A short text that names a month.
bool IsDateLike(std::string_view text);

}  // namespace iha::scoring::math
