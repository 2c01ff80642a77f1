// address.h: the form of a coordinator's address, as flags give it. Pure; thread: any.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace iha::link {

// OK for HOST:PORT with a port of at most 65535, and for unix:/path. InvalidArgument names `flag` and both forms: a
// usage error, nothing to retry.
absl::Status CheckAddress(std::string_view flag, const std::string& address);

}  // namespace iha::link
