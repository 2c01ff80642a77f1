// certificates.h: certificates for TLS tests, made on the spot: an authority, and what it signs.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <string>

namespace iha::testing {

// Writes NAME.pem (valid from one day before to `days` days from now; negative = expired) and NAME.key below `folder`,
// for "localhost", signed by `issuer`'s or, without one, by itself. Frees nothing it returns: the process is a test.
struct Signed {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
};
inline Signed WriteCertificate(const std::string& folder, const std::string& name, int days, const Signed* issuer) {
  Signed made{.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
  EXPECT_NE(made.key, nullptr);
  X509_set_version(made.certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), issuer == nullptr ? 1 : 2);
  constexpr long kDay = 86400;  // NOLINT: OpenSSL's type
  X509_gmtime_adj(X509_getm_notBefore(made.certificate), days < 0 ? 2 * days * kDay : -kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.certificate), days * kDay);
  X509_set_pubkey(made.certificate, made.key);
  const std::string common_name = issuer == nullptr ? name : "localhost";
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.certificate,
                       X509_get_subject_name(issuer == nullptr ? made.certificate : issuer->certificate));
  X509_EXTENSION* extension =
      issuer == nullptr ? X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE")
                        : X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_add_ext(made.certificate, extension, -1);
  EXPECT_GT(X509_sign(made.certificate, issuer == nullptr ? made.key : issuer->key, EVP_sha256()), 0);
  FILE* file = std::fopen((folder + "/" + name + ".pem").c_str(), "w");
  PEM_write_X509(file, made.certificate);
  std::fclose(file);
  file = std::fopen((folder + "/" + name + ".key").c_str(), "w");
  PEM_write_PrivateKey(file, made.key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  return made;
}

}  // namespace iha::testing
