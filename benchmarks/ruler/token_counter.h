// token_counter.h: how many tokens a text has, counted once for each part of it.
//
// A cut is a single space between a letter, digit or common mark and another. Where the tokenizer never joins what a
// cut separates (its vocabulary has no token across one, and samples of RULER's texts agree), the tokens of a text are
// the sum over its parts between cuts: parts that come again, or of which prefix sums are known, are not tokenised
// again. For other tokenizers has_cuts() is false and everything is counted whole. Counts never include special tokens
// that the tokenizer would add. One thread an object; copies share the tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/tokenizer/tokenizer.h"

namespace iha::benchmarks::ruler {

// Whether a text that has `before`, a space and `after` at some place may be cut before that space.
bool MayCut(char before, char after);
// The first cut at or behind `from`, the last one before the text's end; npos: none.
size_t FirstCut(std::string_view text, size_t from = 0);
size_t LastCut(std::string_view text);

// A text that comes again and again, and its tokens from its first cut to its last. `text` must outlive it.
struct CountedPiece {
  std::string_view text;
  size_t first = std::string_view::npos;  // no cut at all: npos
  size_t last = std::string_view::npos;
  int64_t between = 0;
};

class TokenCounter {
 public:
  // Null: words between white space (Python's str.split()) are the tokens.
  explicit TokenCounter(std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  bool has_cuts() const { return has_cuts_; }
  // Of the whole text, tokenised anew.
  int64_t Whole(std::string_view text) const;
  // What `part`, which begins at a cut, adds behind any text. Only with has_cuts().
  int64_t Behind(std::string_view part);
  CountedPiece Measure(std::string_view text);

 private:
  bool SamplesAgree();

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  int64_t anchor_tokens_ = 0;
  bool has_cuts_ = false;
  std::unordered_map<std::string, int64_t> known_;  // short parts
};

// A text that grows at its end, with its count.
class CountedText {
 public:
  explicit CountedText(TokenCounter& counter) : counter_(&counter) {}

  void Append(std::string_view text);
  void Append(const CountedPiece& piece);
  // A part that begins with a space and adds `tokens` behind a cut, as TokenCounter::Behind says. Where it does not
  // begin at a cut, it is counted with what stands before it.
  void AppendPart(std::string_view part, int64_t tokens);
  const std::string& text() const { return text_; }
  std::string Take() && { return std::move(text_); }
  // Of the text so far.
  int64_t Tokens();
  // Of the first `bytes` bytes as a text of their own.
  int64_t TokensBefore(size_t bytes) const;

 private:
  struct Mark {
    size_t cut = 0;  // 0: the text's start
    int64_t tokens = 0;
  };
  // Counts up to the cut at `end`.
  void Settle(size_t end);
  // Tokens of the text from `mark` to `end`.
  int64_t From(const Mark& mark, size_t end) const;

  TokenCounter* counter_;
  std::string text_;
  std::vector<Mark> marks_ = {{}};  // where the count is known, ascending
  size_t part_end_ = 0;             // of a part that was appended at the last mark
  int64_t part_tokens_ = 0;
};

}  // namespace iha::benchmarks::ruler
