#include "common/digest.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/escaping.h"
#include "common/errors.h"

namespace iha {

std::string Digest::Hex() const {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

uint64_t Digest::Prefix64() const {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value = value << 8 | bytes[i];
  return value;
}

absl::StatusOr<Digest> ParseDigest(std::string_view hex) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
  if (hex.size() != 64 || !std::all_of(hex.begin(), hex.end(), is_hex)) {
    return InvalidArgument("digest \"{}\": expected 64 hex characters", hex.substr(0, 80));
  }
  Digest digest;
  const std::string raw = absl::HexStringToBytes(std::string(hex));
  std::memcpy(digest.bytes.data(), raw.data(), digest.bytes.size());
  return digest;
}

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr); }
Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) { EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()); }

Digest Sha256::Finish() {
  Digest digest;
  EVP_DigestFinal_ex(context_->evp, digest.bytes.data(), nullptr);
  return digest;
}

Digest Sha256Of(std::string_view bytes) {
  Sha256 sha;
  sha.Update(bytes);
  return sha.Finish();
}

absl::StatusOr<Digest> Sha256OfFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return NotFound("{}: {}", path, std::strerror(errno));
  Sha256 sha;
  std::string block(1 << 20, '\0');
  for (size_t n; (n = std::fread(block.data(), 1, block.size(), file.get())) > 0;) sha.Update({block.data(), n});
  if (std::ferror(file.get()) != 0) return Unavailable("{}: read error", path);
  return sha.Finish();
}

}  // namespace iha
