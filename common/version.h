// version.h: the release that wrote a table, a database or a baseline file.
#pragma once

namespace iha {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace iha
