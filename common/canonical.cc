#include "common/canonical.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace iha {

CanonicalWriter::CanonicalWriter(std::string_view record, uint32_t version) {
  String(record);
  Uint(version);
}

void CanonicalWriter::Raw64(char tag, uint64_t value) {
  bytes_.push_back(tag);
  for (int i = 0; i < 8; i++) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

CanonicalWriter& CanonicalWriter::String(std::string_view value) {
  Raw64('s', value.size());
  bytes_.append(value);
  return *this;
}

CanonicalWriter& CanonicalWriter::Int(int64_t value) {
  Raw64('i', static_cast<uint64_t>(value));
  return *this;
}

CanonicalWriter& CanonicalWriter::Uint(uint64_t value) {
  Raw64('u', value);
  return *this;
}

CanonicalWriter& CanonicalWriter::Double(double value) {
  if (std::isnan(value)) {
    std::fputs("CanonicalWriter::Double: NaN has no canonical form\n", stderr);
    std::abort();
  }
  Raw64('d', std::bit_cast<uint64_t>(value == 0 ? 0.0 : value));
  return *this;
}

CanonicalWriter& CanonicalWriter::Bool(bool value) {
  Raw64('b', value ? 1 : 0);
  return *this;
}

CanonicalWriter& CanonicalWriter::Bytes(const Digest& value) {
  return String(std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

CanonicalWriter& CanonicalWriter::Tokens(std::span<const int32_t> ids) {
  Raw64('t', ids.size());
  for (const int32_t id : ids) {
    for (int i = 0; i < 4; i++) bytes_.push_back(static_cast<char>(static_cast<uint32_t>(id) >> (8 * i) & 0xFF));
  }
  return *this;
}

CanonicalWriter& CanonicalWriter::List(size_t count) {
  Raw64('l', count);
  return *this;
}

}  // namespace iha
