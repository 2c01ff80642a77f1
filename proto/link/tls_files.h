// tls_files.h: the PEM files of TLS flags, checked before gRPC gets them: its own words for a bad one name no file.
//
// Blocking; thread: any. Errors: those of reading the file, and InvalidArgument; all name the flag.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace iha::link {

// The text of a file that holds at least one certificate.
absl::StatusOr<std::string> ReadCertificates(const std::string& flag, const std::string& path);

struct KeyPair {
  std::string certificate;
  std::string key;
};
// A certificate and its own private key, from --tls-cert and --tls-key.
absl::StatusOr<KeyPair> ReadKeyPair(const std::string& cert_path, const std::string& key_path);

}  // namespace iha::link
