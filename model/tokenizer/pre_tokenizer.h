// pre_tokenizer.h: how tokenizer.json's "pre_tokenizer" cuts a text into the words that the model sees.
//
// Pieces is one buffer and the ranges of it that matter, in order, without empty ones. A pre-tokenizer cuts pieces
// further and may rewrite the buffer; pieces that are added tokens already (id >= 0) pass through untouched.
// Immutable; thread: any. Errors of Parse: InvalidArgument naming the field or the unknown type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"

namespace iha::tokenizer {

struct Piece {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = -1;    // of an added token
  size_t origin = 0;  // leading bytes that come from the first character of the caller's text (Metaspace's "first")
};

struct Pieces {
  std::string text;
  std::vector<Piece> pieces;

  std::string_view View(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void Run(Pieces* pieces) const = 0;

  // `value` may be null: then the result is null, too.
  static absl::StatusOr<std::unique_ptr<const PreTokenizer>> Parse(const Json& value, const std::string& path);
};

}  // namespace iha::tokenizer
