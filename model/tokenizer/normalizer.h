// normalizer.h: what tokenizer.json's "normalizer" does to a segment of text. Immutable; thread: any.
// Errors of Parse: InvalidArgument naming the field or the unknown type.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"

namespace iha::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Valid UTF-8 in, valid UTF-8 out. `dropped` (may be null) is set if what stood at the start went without a trace, so
  // that the rest no longer begins where the text began.
  virtual std::string Apply(std::string text, bool* dropped) const = 0;

  // `value` may be null: then the result is null, too.
  static absl::StatusOr<std::unique_ptr<const Normalizer>> Parse(const Json& value, const std::string& path);
};

}  // namespace iha::tokenizer
