// haystack.h: the essays as sentences, of which any first n words are a prefix, with running token counts.
//
// Cutting the essays behind a word only cuts their list of sentences (the last one ends there), so one table of the
// whole text serves every n. Immutable but for CountTo; thread: any, after CountTo.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/punkt.h"
#include "benchmarks/ruler/tasks.h"
#include "benchmarks/ruler/token_counter.h"

namespace iha::benchmarks::ruler {

// The fixed line of noise haystacks.
inline constexpr std::string_view kNoiseLine =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

// The first `words` words of a haystack.
struct HaystackPrefix {
  size_t sentences = 0;
  size_t end = 0;  // in Haystack::joined()
};

class Haystack {
 public:
  // Of ruler/PaulGrahamEssays.json below the data root. Errors of ReadDataFile and Punkt::Load.
  static absl::StatusOr<Haystack> Essays(const std::string& data_root, Sentences rule);
  // Of any text in UTF-8; `punkt` null: cut behind ". ", "! " and "? ".
  Haystack(std::string_view text, std::shared_ptr<const Punkt> punkt);

  // Items of text.split(" "): the last is empty where the text ends in white space.
  int64_t words() const { return static_cast<int64_t>(word_ends_.size()); }
  // n words of the text repeated as often as it takes, " ".join((words * repeats)[:n]): a haystack of its own.
  Haystack Repeated(int64_t n) const;
  // All sentences, joined by single spaces.
  const std::string& joined() const { return joined_; }
  // 1 <= words <= words()
  HaystackPrefix Prefix(int64_t words) const;
  // Sentences [begin, end) of a prefix, joined by single spaces; begin == end: nothing.
  CountedPiece Sentences(const HaystackPrefix& prefix, size_t begin, size_t end) const;
  // Counts tokens up to the end of the first `words` words: what lies there is not counted again. Any number will do.
  void CountTo(TokenCounter& counter, int64_t words);

 private:
  struct Sentence {
    size_t begin = 0;  // in text_
    size_t end = 0;
    size_t joined = 0;  // where it begins in joined_
  };
  struct Mark {
    size_t cut = 0;  // in joined_
    int64_t tokens = 0;
  };

  explicit Haystack(std::shared_ptr<const Punkt> punkt) : punkt_(std::move(punkt)) {}
  // Fills the tables from text_.
  void Index();

  std::shared_ptr<const Punkt> punkt_;
  std::string text_;  // all white space as single spaces
  std::vector<size_t> word_ends_;
  std::vector<Sentence> sentences_;
  std::string joined_;
  std::vector<Mark> marks_;  // counted from the first cut on
};

}  // namespace iha::benchmarks::ruler
