// canonical.h: the one byte encoding from which ids and keys are digested.
//
// Every value is written as a tag byte, then (for strings) an 8-byte little-endian length, then the payload, so no two
// different sequences of calls give the same bytes. Doubles are written by bit pattern (-0 as +0; NaN is refused by a
// check). A record starts with its name and version: `CanonicalWriter w("iha.sweep", 1);`. Bytes of proto messages are
// NOT canonical and never digested. Thread: any; an object belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/digest.h"

namespace iha {

class CanonicalWriter {
 public:
  CanonicalWriter(std::string_view record, uint32_t version);

  CanonicalWriter& String(std::string_view value);
  CanonicalWriter& Int(int64_t value);
  CanonicalWriter& Uint(uint64_t value);
  CanonicalWriter& Double(double value);
  CanonicalWriter& Bool(bool value);
  CanonicalWriter& Bytes(const Digest& value);
  // 4 bytes a token id, preceded by the count.
  CanonicalWriter& Tokens(std::span<const int32_t> ids);
  // Must precede a sequence of `count` values.
  CanonicalWriter& List(size_t count);

  const std::string& bytes() const { return bytes_; }
  Digest Hash() const { return Sha256Of(bytes_); }

 private:
  void Raw64(char tag, uint64_t value);
  std::string bytes_;
};

}  // namespace iha
