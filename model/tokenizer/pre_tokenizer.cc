#include "model/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/split.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

using Ptr = std::unique_ptr<const PreTokenizer>;

// GPT-2's pattern, built into ByteLevel.
constexpr const char* kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Rewrites the buffer piece by piece: `rewrite(piece, view, &text)` appends the piece's new text and corrects its
// origin. Pieces of added tokens lose their text, which nobody reads.
template <class Rewrite>
void RewriteAll(Pieces* pieces, Rewrite rewrite) {
  std::string text;
  text.reserve(pieces->text.size() + pieces->text.size() / 2);
  for (Piece& piece : pieces->pieces) {
    const std::string_view view = pieces->View(piece);
    piece.begin = text.size();
    if (piece.id < 0) rewrite(piece, view, &text);
    piece.end = text.size();
  }
  pieces->text = std::move(text);
}

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<Ptr> parts) : parts_(std::move(parts)) {}
  void Run(Pieces* pieces) const override {
    for (const Ptr& part : parts_) part->Run(pieces);
  }

 private:
  std::vector<Ptr> parts_;
};

class SplitPreTokenizer : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void Run(Pieces* pieces) const override {
    PatternMatcher matcher(pattern_);
    SplitAll(pieces, behavior_, invert_,
             [&](std::string_view text, std::vector<Span>* matches) { matcher.FindAll(text, matches); });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, Ptr split)
      : add_prefix_space_(add_prefix_space), split_(std::move(split)) {}
  void Run(Pieces* pieces) const override {
    if (add_prefix_space_) {
      RewriteAll(pieces, [](Piece& piece, std::string_view view, std::string* text) {
        if (!view.starts_with(' ')) {
          text->push_back(' ');
          if (piece.origin > 0) ++piece.origin;
        }
        text->append(view);
      });
    }
    if (split_ != nullptr) split_->Run(pieces);
    RewriteAll(pieces, [](Piece& piece, std::string_view view, std::string* text) {
      if (piece.origin > 0) piece.origin = ByteAlphabetLength(view.substr(0, piece.origin));
      AppendByteAlphabet(view, text);
    });
  }

 private:
  bool add_prefix_space_;
  Ptr split_;  // null: use_regex is false
};

enum class PrependScheme { kAlways, kFirst, kNever };

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  MetaspacePreTokenizer(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}
  void Run(Pieces* pieces) const override {
    RewriteAll(pieces, [this](Piece& piece, std::string_view view, std::string* text) {
      const bool wanted = scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.origin > 0);
      const auto spaces = std::count(view.begin(), view.begin() + static_cast<std::ptrdiff_t>(piece.origin), ' ');
      piece.origin += static_cast<size_t>(spaces) * (replacement_.size() - 1);
      if (wanted && !view.starts_with(' ') && !view.starts_with(replacement_)) {
        text->append(replacement_);
        if (piece.origin > 0) piece.origin += replacement_.size();
      }
      for (const char c : view) {
        if (c == ' ') {
          text->append(replacement_);
        } else {
          text->push_back(c);
        }
      }
    });
    if (!split_) return;
    const char32_t mark = FirstChar(replacement_).value;
    SplitAtChars(pieces, SplitBehavior::kMergedWithNext, [mark](char32_t c) { return c == mark; });
  }

 private:
  std::string replacement_;  // one character
  PrependScheme scheme_;
  bool split_;
};

// Cuts at single characters of a class.
class CharClassPreTokenizer : public PreTokenizer {
 public:
  using IsDelimiter = bool (*)(char32_t);
  CharClassPreTokenizer(IsDelimiter is_delimiter, SplitBehavior behavior)
      : is_delimiter_(is_delimiter), behavior_(behavior) {}
  void Run(Pieces* pieces) const override { SplitAtChars(pieces, behavior_, is_delimiter_); }

 private:
  IsDelimiter is_delimiter_;
  SplitBehavior behavior_;
};

class CharDelimiterPreTokenizer : public PreTokenizer {
 public:
  explicit CharDelimiterPreTokenizer(char32_t delimiter) : delimiter_(delimiter) {}
  void Run(Pieces* pieces) const override {
    SplitAtChars(pieces, SplitBehavior::kRemoved, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

// \w+|[^\w\s]+ of the regex crate; what matches neither is dropped.
class WhitespacePreTokenizer : public PreTokenizer {
 public:
  void Run(Pieces* pieces) const override {
    SplitAll(pieces, SplitBehavior::kRemoved, true, [](std::string_view text, std::vector<Span>* matches) {
      matches->clear();
      enum class Kind { kSpace, kWord, kOther };
      Kind last = Kind::kSpace;
      for (size_t i = 0; i < text.size();) {
        const CodePoint c = FirstChar(text.substr(i));
        const Kind kind = IsWord(c.value) ? Kind::kWord : IsWhiteSpace(c.value) ? Kind::kSpace : Kind::kOther;
        if (kind != Kind::kSpace && kind == last) {
          matches->back().end = i + c.length;
        } else if (kind != Kind::kSpace) {
          matches->push_back({i, i + c.length});
        }
        last = kind;
        i += c.length;
      }
    });
  }
};

absl::StatusOr<Ptr> ParseAt(const Json& value, const std::string& path, int depth);

absl::StatusOr<Ptr> ParseSequence(const Json& value, const std::string& path, int depth) {
  IHA_ASSIGN_OR_RETURN(const Json* const list, GetArray(value, "pretokenizers", path));
  std::vector<Ptr> parts;
  for (size_t i = 0; i < list->size(); ++i) {
    IHA_ASSIGN_OR_RETURN(Ptr part, ParseAt((*list)[i], fmt::format("{}.pretokenizers[{}]", path, i), depth + 1));
    parts.push_back(std::move(part));
  }
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

absl::StatusOr<Ptr> ParseSplit(const Json& value, const std::string& path) {
  IHA_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Parse(value, path));
  IHA_ASSIGN_OR_RETURN(const SplitBehavior behavior, ParseBehavior(value, "behavior", path));
  IHA_ASSIGN_OR_RETURN(const bool invert, GetBool(value, "invert", path));
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior, invert);
}

absl::StatusOr<Ptr> ParseByteLevel(const Json& value, const std::string& path) {
  IHA_ASSIGN_OR_RETURN(const bool add_prefix_space, GetBool(value, "add_prefix_space", path));
  IHA_ASSIGN_OR_RETURN(const bool use_regex, GetBool(value, "use_regex", path, true));
  Ptr split;
  if (use_regex) {
    IHA_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Regex(kGpt2Regex));
    split = std::make_unique<SplitPreTokenizer>(std::move(pattern), SplitBehavior::kIsolated, false);
  }
  return std::make_unique<ByteLevelPreTokenizer>(add_prefix_space, std::move(split));
}

absl::StatusOr<Ptr> ParseMetaspace(const Json& value, const std::string& path) {
  IHA_ASSIGN_OR_RETURN(const char32_t mark, GetChar(value, "replacement", path));
  IHA_ASSIGN_OR_RETURN(const std::string name, GetString(value, "prepend_scheme", path, "always"));
  IHA_ASSIGN_OR_RETURN(const bool split, GetBool(value, "split", path, true));
  // The older spelling; true says nothing beyond the scheme.
  IHA_ASSIGN_OR_RETURN(const bool add_prefix_space, GetBool(value, "add_prefix_space", path, true));
  PrependScheme scheme;
  if (name == "always") {
    scheme = PrependScheme::kAlways;
  } else if (name == "first") {
    scheme = PrependScheme::kFirst;
  } else if (name == "never") {
    scheme = PrependScheme::kNever;
  } else {
    return Unsupported(path + ".prepend_scheme", name, {"always", "first", "never"});
  }
  if (!add_prefix_space && scheme != PrependScheme::kNever) {
    return InvalidArgument("{}.add_prefix_space: found false with prepend_scheme \"{}\", expected \"never\"", path,
                           name);
  }
  std::string replacement;
  AppendUtf8(mark, &replacement);
  return std::make_unique<MetaspacePreTokenizer>(std::move(replacement), scheme, split);
}

absl::StatusOr<Ptr> ParseAt(const Json& value, const std::string& path, int depth) {
  if (depth > kMaxNesting) return TooDeep(path);
  IHA_RETURN_IF_ERROR(ExpectObject(value, path));
  IHA_ASSIGN_OR_RETURN(const std::string type, GetString(value, "type", path));
  if (type == "Sequence") return ParseSequence(value, path, depth);
  if (type == "Split") return ParseSplit(value, path);
  if (type == "ByteLevel") return ParseByteLevel(value, path);
  if (type == "Metaspace") return ParseMetaspace(value, path);
  if (type == "Whitespace") return std::make_unique<WhitespacePreTokenizer>();
  if (type == "WhitespaceSplit") {
    return std::make_unique<CharClassPreTokenizer>(IsWhiteSpace, SplitBehavior::kRemoved);
  }
  if (type == "Digits") {
    IHA_ASSIGN_OR_RETURN(const bool individual, GetBool(value, "individual_digits", path));
    return std::make_unique<CharClassPreTokenizer>(IsNumeric,
                                                   individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    IHA_ASSIGN_OR_RETURN(const SplitBehavior behavior,
                         ParseBehavior(value, "behavior", path, SplitBehavior::kIsolated));
    return std::make_unique<CharClassPreTokenizer>(IsPunctuation, behavior);
  }
  if (type == "CharDelimiterSplit") {
    IHA_ASSIGN_OR_RETURN(const char32_t delimiter, GetChar(value, "delimiter", path));
    return std::make_unique<CharDelimiterPreTokenizer>(delimiter);
  }
  if (type == "BertPreTokenizer") {
    std::vector<Ptr> parts;
    parts.push_back(std::make_unique<CharClassPreTokenizer>(IsWhiteSpace, SplitBehavior::kRemoved));
    parts.push_back(std::make_unique<CharClassPreTokenizer>(IsPunctuation, SplitBehavior::kIsolated));
    return std::make_unique<SequencePreTokenizer>(std::move(parts));
  }
  return Unsupported(path + ".type", type,
                     {"BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "Metaspace", "Punctuation",
                      "Sequence", "Split", "Whitespace", "WhitespaceSplit"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<const PreTokenizer>> PreTokenizer::Parse(const Json& value, const std::string& path) {
  if (value.is_null()) return Ptr();
  return ParseAt(value, path, 0);
}

}  // namespace iha::tokenizer
