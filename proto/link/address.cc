#include "proto/link/address.h"

#include <sys/un.h>

#include <charconv>

#include "common/errors.h"

namespace iha::link {
namespace {

bool IsAddress(std::string_view address) {
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix)) return address.size() > kUnix.size();
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = address.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size();
}

}  // namespace

absl::Status CheckAddress(std::string_view flag, const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  constexpr size_t kMostPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  if (address.starts_with(kUnix) && address.size() - kUnix.size() > kMostPathBytes) {
    return InvalidArgument("{} {}: a socket's path has at most {} bytes; give a shorter one", flag, address,
                           kMostPathBytes);
  }
  if (IsAddress(address)) return absl::OkStatus();
  return InvalidArgument("{} {}: expected HOST:PORT or unix:/path", flag, address.empty() ? "\"\"" : address);
}

}  // namespace iha::link
