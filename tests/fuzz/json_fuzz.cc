// Any bytes: ParseJson takes or refuses them with a message of one line; what it takes has one canonical form, which it
// takes again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/json.h"
#include "nlohmann/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<nlohmann::json> value = iha::ParseJson(text, "fuzz");
  if (!value.ok()) {
    const absl::string_view message = value.status().message();
    if (message.empty() || message.find('\n') != absl::string_view::npos) std::abort();
    return 0;
  }
  const std::string canonical = value->dump();
  const absl::StatusOr<nlohmann::json> again = iha::ParseJson(canonical, "fuzz");
  if (!again.ok() || again->dump() != canonical) std::abort();
  return 0;
}
