// data_root.h: where benchmark data lies unless a flag says otherwise. Pure: main reads the two variables.
#pragma once

#include <string>

namespace iha {

// `data` = $IHA_EVAL_DATA, `home` = $HOME; either may be null.
inline std::string DefaultDataRoot(const char* data, const char* home) {
  if (data != nullptr && *data != '\0') return data;
  return std::string(home == nullptr ? "." : home) + "/.local/share/iha-eval";
}

}  // namespace iha
