// post_processor.h: the tokens that tokenizer.json's "post_processor" puts around one text (BOS, EOS).
// Immutable; thread: any. Errors of Parse: InvalidArgument naming the field or the unknown type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"

namespace iha::tokenizer {

class PostProcessor {
 public:
  // `value` may be null: nothing is added then.
  static absl::StatusOr<PostProcessor> Parse(const Json& value, const std::string& path);

  std::vector<int32_t> Apply(std::vector<int32_t> ids) const;

 private:
  // Ids, and (-1) where the text goes. A template may use the text more than once or not at all.
  using Template = std::vector<int32_t>;

  absl::Status ParseAt(const Json& value, const std::string& path, int depth);
  absl::Status ParseTemplate(const Json& value, const std::string& path);
  absl::Status ParseClsSep(const Json& value, const std::string& path);

  std::vector<Template> templates_;  // applied one after the other
};

}  // namespace iha::tokenizer
