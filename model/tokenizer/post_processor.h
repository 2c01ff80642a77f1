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

  // Without `add_special` only what templates do with the text itself is done (they may repeat it).
  std::vector<int32_t> Apply(std::vector<int32_t> ids, bool add_special) const;

 private:
  // As in the crate, the processors of a sequence hand on a list of parts, which are joined at the end only: a template
  // makes one part of each of its pieces, and reads two parts as a pair.
  using Parts = std::vector<std::vector<int32_t>>;
  struct Piece {
    int source = -1;           // which part; -1: the ids
    std::vector<int32_t> ids;  // of a special token
  };
  using Template = std::vector<Piece>;
  struct Step {
    enum class Kind { kTemplate, kBert, kRoberta } kind = Kind::kTemplate;
    Template single, pair;
    int32_t cls = 0, sep = 0;
  };

  absl::Status ParseAt(const Json& value, const std::string& path, int depth);
  absl::Status ParseTemplate(const Json& value, const std::string& path);
  static absl::StatusOr<Template> ParsePieces(const Json& value, const char* key, int sources, const std::string& path);
  absl::Status ParseClsSep(const Json& value, const std::string& path, Step::Kind kind);
  static void Run(const Step& step, bool add_special, Parts* parts);

  std::vector<Step> steps_;                    // applied one after the other
  size_t parts_with_ = 1, parts_without_ = 1;  // how many the steps so far leave, with and without special tokens
};

}  // namespace iha::tokenizer
