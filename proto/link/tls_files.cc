#include "proto/link/tls_files.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"

namespace iha::link {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Over(const std::string& text) { return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free}; }

// An encrypted key asks for its password: there is nobody to answer.
int NoPassword(char*, int, int, void*) { return -1; }

Certificate FirstCertificate(const std::string& text) {
  return {PEM_read_bio_X509(Over(text).get(), nullptr, NoPassword, nullptr), X509_free};
}

}  // namespace

absl::StatusOr<std::string> ReadCertificates(const std::string& flag, const std::string& path) {
  auto text = ReadFile(path);
  if (!text.ok()) return Annotate(text.status(), flag);
  if (FirstCertificate(*text) != nullptr) return text;
  return InvalidArgument("{} {}: no PEM certificate in it; expected \"-----BEGIN CERTIFICATE-----\"", flag, path);
}

absl::StatusOr<KeyPair> ReadKeyPair(const std::string& cert_path, const std::string& key_path) {
  if (cert_path.empty() || key_path.empty()) return InvalidArgument("TLS needs both --tls-cert and --tls-key");
  KeyPair pair;
  IHA_ASSIGN_OR_RETURN(pair.certificate, ReadCertificates("--tls-cert", cert_path));
  auto key_text = ReadFile(key_path);
  if (!key_text.ok()) return Annotate(key_text.status(), "--tls-key");
  pair.key = *std::move(key_text);
  const Key key(PEM_read_bio_PrivateKey(Over(pair.key).get(), nullptr, NoPassword, nullptr), EVP_PKEY_free);
  if (key == nullptr) {
    return InvalidArgument("--tls-key {}: no private key in it that can be read; expected PEM without a password",
                           key_path);
  }
  if (X509_check_private_key(FirstCertificate(pair.certificate).get(), key.get()) != 1) {
    return InvalidArgument("--tls-key {}: not the key of the certificate in {}", key_path, cert_path);
  }
  return pair;
}

}  // namespace iha::link
