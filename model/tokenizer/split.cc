#include "model/tokenizer/split.h"

#include <algorithm>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::tokenizer {
namespace {

struct Part {
  Span span;
  bool is_match;
};

// The whole piece as alternating parts; empty only where a match is.
void Alternate(size_t length, const std::vector<Span>& matches, bool invert, std::vector<Part>* parts) {
  size_t at = 0;
  for (const Span& match : matches) {
    if (at != match.begin) parts->push_back({{at, match.begin}, invert});
    parts->push_back({match, !invert});
    at = match.end;
  }
  if (at != length) parts->push_back({{at, length}, invert});
}

// Joins parts to what was kept before them, as the Rust folds do: `previous` is whether the part before was a match,
// and starts as false.
void Join(SplitBehavior behavior, std::vector<Part>* parts) {
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(parts->begin(), parts->end());
  std::vector<Part> kept;
  bool previous = false;
  for (const Part& part : *parts) {
    const bool joins = behavior == SplitBehavior::kContiguous ? part.is_match == previous : part.is_match && !previous;
    if (joins && !kept.empty()) {
      if (backwards) {
        kept.back().span.begin = part.span.begin;
      } else {
        kept.back().span.end = part.span.end;
      }
    } else {
      kept.push_back({part.span, false});
    }
    previous = part.is_match;
  }
  if (backwards) std::reverse(kept.begin(), kept.end());
  *parts = std::move(kept);
}

}  // namespace

absl::StatusOr<SplitBehavior> ParseBehavior(const Json& object, const char* key, std::string_view path,
                                            std::optional<SplitBehavior> fallback) {
  if (fallback.has_value() && Find(object, key) == nullptr) return *fallback;
  IHA_ASSIGN_OR_RETURN(const std::string name, GetString(object, key, path));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return Unsupported(FieldPath(path, key), name,
                     {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"});
}

void AppendParts(const Piece& piece, const std::vector<Span>& matches, SplitBehavior behavior, bool invert,
                 std::vector<Piece>* out) {
  const auto append = [&](size_t begin, size_t end) {
    if (begin == end) return;
    const size_t origin = std::min(piece.origin, end);
    out->push_back({piece.begin + begin, piece.begin + end, -1, origin - std::min(origin, begin)});
  };
  const size_t length = piece.end - piece.begin;
  if (behavior == SplitBehavior::kIsolated) {
    size_t at = 0;
    for (const Span& match : matches) {
      append(at, match.begin);
      append(match.begin, match.end);
      at = match.end;
    }
    append(at, length);
    return;
  }
  std::vector<Part> parts;
  Alternate(length, matches, invert, &parts);
  if (behavior != SplitBehavior::kRemoved) Join(behavior, &parts);
  for (const Part& part : parts) {
    if (behavior != SplitBehavior::kRemoved || !part.is_match) append(part.span.begin, part.span.end);
  }
}

}  // namespace iha::tokenizer
