// data_root.h: where benchmark data lies, and what is made of it is kept, unless a flag says otherwise. Pure: main
// reads the variables.
#pragma once

#include <string>

namespace iha {

// `data` = $IHA_EVAL_DATA, `home` = $HOME; either may be null.
inline std::string DefaultDataRoot(const char* data, const char* home) {
  if (data != nullptr && *data != '\0') return data;
  return std::string(home == nullptr ? "." : home) + "/.local/share/iha-eval";
}

// `cache` = $XDG_CACHE_HOME, `home` = $HOME; either may be null. "": without both nothing is kept.
inline std::string DefaultCacheDir(const char* cache, const char* home) {
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/iha-eval";
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.cache/iha-eval";
}

}  // namespace iha
