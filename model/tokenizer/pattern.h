// pattern.h: what Split and Replace look for: a literal string or a regular expression (PCRE2, compiled by its JIT).
//
// A Pattern is immutable and may be shared by threads; a PatternMatcher belongs to one thread and must not outlive its
// Pattern. Matches are found as the onig crate's find_iter finds them: leftmost, not overlapping, no empty match right
// after a match. Texts are valid UTF-8. Errors of Parse: InvalidArgument.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"

namespace iha::tokenizer {

struct Span {
  size_t begin = 0;
  size_t end = 0;
};

class Pattern {
 public:
  // The value of a "pattern" field: {"String": s} or {"Regex": s}.
  static absl::StatusOr<Pattern> Parse(const Json& object, std::string_view path);
  static Pattern Literal(std::string text);
  static absl::StatusOr<Pattern> Regex(std::string_view oniguruma);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  bool is_literal() const { return code_ == nullptr; }
  const std::string& literal() const { return literal_; }
  // How many times longer a text can get whose matches are replaced by `content`; at least 1.
  double Growth(std::string_view content) const;

 private:
  friend class PatternMatcher;
  struct Code;
  Pattern();
  std::string literal_;
  std::unique_ptr<Code> code_;
};

// All Replace stages of a chain together: Llama 2's and Gemma's take 3, a hostile one a text of four letters to a
// terabyte.
inline constexpr double kMaxGrowth = 1000;
absl::Status GrowsTooMuch(std::string_view path, double growth);

class PatternMatcher {
 public:
  explicit PatternMatcher(const Pattern& pattern);
  ~PatternMatcher();
  PatternMatcher(const PatternMatcher&) = delete;
  PatternMatcher& operator=(const PatternMatcher&) = delete;

  // Replaces `matches` by the matches in `text`, in order.
  void FindAll(std::string_view text, std::vector<Span>* matches);

 private:
  struct Scratch;
  bool MatchAt(std::string_view text, size_t from, Span* match);

  const Pattern& pattern_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace iha::tokenizer
