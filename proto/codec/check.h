// check.h: the checks of the codec, each with the path of the field: "SweepSpec.entries[3].sampling.top_p: found 1.5,
// expected a number in (0, 1]". For the codec's own files only, but IsId.
//
// A Check is a place in a message; it lives on the stack of the function that reads that place. The first failure of a
// message stays in its status, later ones are dropped, and values read after a failure are not used. Costs nothing but
// the comparisons while all is well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/digest.h"

namespace iha::codec {

// Names that a peer chooses: 1 to kMaxIdBytes characters of [A-Za-z0-9._:-].
bool IsId(std::string_view value);
inline constexpr char kIdRule[] = "1 to 128 characters of [A-Za-z0-9._:-]";

class Check {
 public:
  // The whole message; `status` must outlive it and be OK.
  Check(const char* message, absl::Status* status) : field_(message), status_(status) {}
  Check Sub(const char* field, int index = -1) const { return Check(this, field, index, status_); }

  bool ok() const { return status_->ok(); }
  // Text is made safe for a terminal and cut.
  void Fail(const char* field, std::string_view found, std::string_view expected,
            absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;

  // OK if `present`; messages that must be there.
  void Has(const char* field, bool present) const;
  // Number of elements; false = too many, don't read them.
  bool Count(const char* field, int count, int max) const;
  int64_t Int(const char* field, int64_t value, int64_t min, int64_t max) const;
  int32_t Int32(const char* field, int32_t value, int32_t min, int32_t max) const;
  // Finite and in [min, max].
  double Real(const char* field, double value, double min, double max) const;
  // IsId.
  std::string Id(const char* field, const std::string& value) const;
  // Valid UTF-8 without control characters, at most max_bytes.
  std::string Line(const char* field, const std::string& value, size_t max_bytes) const;
  // As Line, and not empty.
  std::string Name(const char* field, const std::string& value) const;
  // Valid UTF-8, line breaks included, at most max_bytes.
  std::string Text(const char* field, const std::string& value, size_t max_bytes) const;
  // Any bytes, at most max_bytes.
  std::string Bytes(const char* field, const std::string& value, size_t max_bytes) const;
  // 32 raw bytes.
  Digest Hash(const char* field, const std::string& value) const;
  // Microseconds from 0.
  absl::Duration Micros(const char* field, int64_t value) const;

 private:
  Check(const Check* parent, const char* field, int index, absl::Status* status)
      : parent_(parent), field_(field), index_(index), status_(status) {}
  std::string Path() const;

  const Check* parent_ = nullptr;
  const char* field_;
  int index_ = -1;
  absl::Status* status_;
};

std::string RawBytes(const Digest& digest);

}  // namespace iha::codec
