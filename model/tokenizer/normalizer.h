// normalizer.h: what tokenizer.json's "normalizer" does to a segment of text. Immutable; thread: any.
// Errors of Parse: InvalidArgument naming the field or the unknown type.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"

namespace iha::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Valid UTF-8 in, valid UTF-8 out. `origin` (null: not wanted) is how many leading bytes of the text come from the
  // very first character of the caller's text; it is updated, 0 once they are all gone.
  virtual std::string Apply(std::string text, size_t* origin) const = 0;

  // `value` may be null: then the result is null, too.
  static absl::StatusOr<std::unique_ptr<const Normalizer>> Parse(const Json& value, const std::string& path);
};

}  // namespace iha::tokenizer
