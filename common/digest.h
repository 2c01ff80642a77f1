// digest.h: SHA-256 of bytes, streams and files; the identity of everything that iha-eval names by content.
//
// Values are immutable and cheap to copy (32 bytes). Thread: any. `Sha256` objects belong to one thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;
  // 64 lower-case hex characters.
  std::string Hex() const;
  // First 8 bytes, big endian: the key of a random stream (DESIGN section 5).
  uint64_t Prefix64() const;
  bool empty() const { return bytes == std::array<uint8_t, 32>{}; }
};

// InvalidArgument unless `hex` is exactly 64 hex characters.
absl::StatusOr<Digest> ParseDigest(std::string_view hex);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Update(std::string_view bytes);
  // Ends the computation; the object must not be used afterwards.
  Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest Sha256Of(std::string_view bytes);
// Reads the file in blocks. NotFound / Unavailable with path and errno text on I/O errors.
absl::StatusOr<Digest> Sha256OfFile(const std::string& path);

}  // namespace iha
