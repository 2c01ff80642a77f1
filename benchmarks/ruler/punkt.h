// punkt.h: NLTK's English sentence splitter (Punkt, Kiss and Strunk 2006), span for span, as NLTK 3.10.4 cuts a text.
//
// Immutable; thread: any; linear time. Source: nltk/tokenize/punkt.py (span_tokenize with realign_boundaries) and the
// four files of its english punkt_tab.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::benchmarks::ruler {

// Code points [begin, end) of one sentence.
struct SentenceSpan {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const SentenceSpan&) const = default;
};

class Punkt {
 public:
  // The checked files ruler/punkt_tab/* of the data root. Errors of ReadDataFile; DataLoss never follows from them.
  static absl::StatusOr<Punkt> Load(const std::string& data_root);
  // The same from the files' texts. InvalidArgument: a line that is not "type TAB number" or "type TAB type".
  static absl::StatusOr<Punkt> FromTexts(std::string_view abbreviations, std::string_view collocations,
                                         std::string_view ortho_context, std::string_view sentence_starters);

  // `text` is one line (no LF): what is cut is decided within lines.
  std::vector<SentenceSpan> Split(std::u32string_view text) const;

 private:
  friend class PunktContext;
  using Words = std::unordered_set<std::string>;

  Words abbreviations_;
  Words collocations_;  // "type TAB type"
  Words starters_;
  std::unordered_map<std::string, int> ortho_context_;
};

}  // namespace iha::benchmarks::ruler
