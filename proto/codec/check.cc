#include "proto/codec/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/text.h"
#include "proto/codec/limits.h"

namespace iha::codec {

std::string Check::Path() const {
  const std::string own = index_ < 0 ? std::string(field_) : fmt::format("{}[{}]", field_, index_);
  return parent_ == nullptr ? own : parent_->Path() + "." + own;
}

void Check::Fail(const char* field, std::string_view found, std::string_view expected, absl::StatusCode code) const {
  if (!status_->ok()) return;
  constexpr size_t kShown = 80;
  *status_ = absl::Status(
      code, fmt::format("{}.{}: found {}, expected {}", Path(), field, TerminalSafe(found, kShown), expected));
}

void Check::Has(const char* field, bool present) const {
  if (!present) Fail(field, "nothing", "a message");
}

bool Check::Count(const char* field, int count, int max) const {
  if (count > max) Fail(field, fmt::format("{} elements", count), fmt::format("at most {}", max));
  return count <= max;
}

int64_t Check::Int(const char* field, int64_t value, int64_t min, int64_t max) const {
  if (value < min || value > max) Fail(field, fmt::to_string(value), fmt::format("an integer in [{}, {}]", min, max));
  return value;
}

int32_t Check::Int32(const char* field, int32_t value, int32_t min, int32_t max) const {
  return static_cast<int32_t>(Int(field, value, min, max));
}

double Check::Real(const char* field, double value, double min, double max) const {
  if (!(value >= min && value <= max) || !std::isfinite(value)) {
    Fail(field, fmt::to_string(value), fmt::format("a number in [{}, {}]", min, max));
  }
  return value;
}

static_assert(kMaxIdBytes == 128, "kIdRule says so");

bool IsId(std::string_view value) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == ':' || c == '-';
  };
  return !value.empty() && value.size() <= kMaxIdBytes && std::all_of(value.begin(), value.end(), allowed);
}

std::string Check::Id(const char* field, const std::string& value) const {
  if (!IsId(value)) Fail(field, fmt::format("\"{}\"", value), kIdRule);
  return value;
}

std::string Check::Line(const char* field, const std::string& value, size_t max_bytes) const {
  if (value.size() > max_bytes) {
    Fail(field, fmt::format("{} bytes", value.size()), fmt::format("at most {}", max_bytes));
  } else if (!IsValidUtf8(value) || TerminalSafe(value) != value) {
    Fail(field, fmt::format("\"{}\"", value), "printable UTF-8");
  }
  return value;
}

std::string Check::Text(const char* field, const std::string& value, size_t max_bytes) const {
  if (!IsValidUtf8(value)) Fail(field, fmt::format("\"{}\"", value), "UTF-8");
  return Bytes(field, value, max_bytes);
}

std::string Check::Name(const char* field, const std::string& value) const {
  if (value.empty()) Fail(field, "nothing", "a name");
  return Line(field, value, kMaxNameBytes);
}

std::string Check::Bytes(const char* field, const std::string& value, size_t max_bytes) const {
  if (value.size() > max_bytes) {
    Fail(field, fmt::format("{} bytes", value.size()), fmt::format("at most {}", max_bytes));
  }
  return value;
}

Digest Check::Hash(const char* field, const std::string& value) const {
  Digest digest;
  if (value.size() != kDigestBytes) {
    Fail(field, fmt::format("{} bytes", value.size()), fmt::format("a digest of {} bytes", kDigestBytes));
    return digest;
  }
  std::memcpy(digest.bytes.data(), value.data(), kDigestBytes);
  return digest;
}

absl::Duration Check::Micros(const char* field, int64_t value) const {
  return absl::Microseconds(Int(field, value, 0, kMaxCount));
}

std::string RawBytes(const Digest& digest) {
  return std::string(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
}

}  // namespace iha::codec
