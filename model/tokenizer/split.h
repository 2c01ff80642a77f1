// split.h: cutting pieces at matches, with the delimiter behaviours of NormalizedString::split. Pure; thread: any.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// The field `key`: "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous".
absl::StatusOr<SplitBehavior> ParseBehavior(const Json& object, const char* key, std::string_view path,
                                            std::optional<SplitBehavior> fallback = std::nullopt);

// Appends the parts of `piece`, given its matches (offsets from the piece's begin, in order, not overlapping). With
// `invert` what lies between the matches counts as the delimiter and the matches as the rest.
void AppendParts(const Piece& piece, const std::vector<Span>& matches, SplitBehavior behavior, bool invert,
                 std::vector<Piece>* out);

// Cuts every piece of text. `find(view, &matches)` gives the matches in one piece.
template <class Find>
void SplitAll(Pieces* pieces, SplitBehavior behavior, bool invert, Find find) {
  std::vector<Piece> out;
  out.reserve(pieces->pieces.size() + pieces->text.size() / 4);
  std::vector<Span> matches;
  for (const Piece& piece : pieces->pieces) {
    if (piece.id >= 0) {
      out.push_back(piece);
      continue;
    }
    find(pieces->View(piece), &matches);
    AppendParts(piece, matches, behavior, invert, &out);
  }
  pieces->pieces = std::move(out);
}

// Cuts at single characters for which `is_delimiter` holds.
template <class IsDelimiter>
void SplitAtChars(Pieces* pieces, SplitBehavior behavior, IsDelimiter is_delimiter) {
  SplitAll(pieces, behavior, false, [&](std::string_view text, std::vector<Span>* matches) {
    matches->clear();
    for (size_t i = 0; i < text.size();) {
      const CodePoint c = FirstChar(text.substr(i));
      if (is_delimiter(c.value)) matches->push_back({i, i + c.length});
      i += c.length;
    }
  });
}

}  // namespace iha::tokenizer
