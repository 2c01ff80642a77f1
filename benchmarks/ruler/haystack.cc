#include "benchmarks/ruler/haystack.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "benchmarks/manifest.h"
#include "benchmarks/ruler/data_files.h"
#include "benchmarks/ruler/text.h"
#include "benchmarks/scoring/python_text.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

// Between two marks lie at least so many bytes: fewer would tokenise more small parts, more would leave longer ends.
constexpr size_t kMarkSpacing = 96;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes [begin, end) of each sentence.
std::vector<SentenceSpan> SplitSimply(std::string_view text) {
  std::vector<SentenceSpan> spans;
  size_t begin = 0;
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] != ' ' || std::string_view(".!?").find(text[at - 1]) == std::string_view::npos) continue;
    spans.push_back({begin, at});
    begin = at + 1;
  }
  if (begin < text.size()) spans.push_back({begin, text.size()});
  return spans;
}

std::vector<SentenceSpan> SplitByPunkt(const Punkt& punkt, std::string_view text) {
  std::vector<SentenceSpan> spans = punkt.Split(ToCodePoints(text));
  // From code points to bytes: both ends ascend from span to span.
  size_t byte = 0, character = 0;
  const auto byte_of = [&](size_t wanted) {
    while (character < wanted) {
      do ++byte;
      while (byte < text.size() && IsContinuation(text[byte]));
      ++character;
    }
    return byte;
  };
  for (SentenceSpan& span : spans) {
    span.begin = byte_of(span.begin);
    span.end = byte_of(span.end);
  }
  return spans;
}

}  // namespace

Haystack::Haystack(std::string_view text, std::shared_ptr<const Punkt> punkt)
    : punkt_(std::move(punkt)), text_(CollapseSpace(text)) {
  Index();
}

void Haystack::Index() {
  for (size_t at = text_.find(' '); at != std::string::npos; at = text_.find(' ', at + 1)) word_ends_.push_back(at);
  word_ends_.push_back(text_.size());
  const std::string_view stripped = scoring::PythonRstrip(text_);
  for (const SentenceSpan& span : punkt_ == nullptr ? SplitSimply(stripped) : SplitByPunkt(*punkt_, stripped)) {
    if (!sentences_.empty()) joined_ += ' ';
    sentences_.push_back({.begin = span.begin, .end = span.end, .joined = joined_.size()});
    joined_.append(stripped, span.begin, span.end - span.begin);
  }
}

absl::StatusOr<Haystack> Haystack::Essays(const std::string& data_root, ruler::Sentences rule) {
  IHA_ASSIGN_OR_RETURN(const std::string file, ReadDataFile(data_root, kEssays));
  IHA_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(file, kEssays));
  if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) {
    return InvalidArgument("{}: expected {{\"text\": \"...\"}}", kEssays);
  }
  const auto& text = json["text"].get_ref<const std::string&>();
  if (rule == ruler::Sentences::kSimple) return Haystack(text, nullptr);
  IHA_ASSIGN_OR_RETURN(Punkt punkt, Punkt::Load(data_root));
  return Haystack(text, std::make_shared<const Punkt>(std::move(punkt)));
}

Haystack Haystack::Repeated(int64_t n) const {
  Haystack longer(punkt_);
  for (; n > 0; n -= words()) {
    if (!longer.text_.empty()) longer.text_ += ' ';
    longer.text_.append(text_, 0, word_ends_[static_cast<size_t>(std::min(n, words())) - 1]);
  }
  longer.Index();
  return longer;
}

HaystackPrefix Haystack::Prefix(int64_t words) const {
  const size_t end = word_ends_[static_cast<size_t>(words) - 1];
  const auto after = std::lower_bound(sentences_.begin(), sentences_.end(), end,
                                      [](const Sentence& sentence, size_t wanted) { return sentence.begin < wanted; });
  if (after == sentences_.begin()) return {};
  const Sentence& last = *(after - 1);
  return {.sentences = static_cast<size_t>(after - sentences_.begin()),
          .end = last.joined + std::min(end, last.end) - last.begin};
}

CountedPiece Haystack::Sentences(const HaystackPrefix& prefix, size_t begin, size_t end) const {
  if (begin >= end) return {};
  const size_t from = sentences_[begin].joined;
  const size_t to = end == prefix.sentences ? prefix.end : sentences_[end].joined - 1;
  CountedPiece piece;
  piece.text = std::string_view(joined_).substr(from, to - from);
  const auto before = [](const Mark& mark, size_t wanted) { return mark.cut < wanted; };
  // A cut needs a character on its either side.
  const auto first = std::lower_bound(marks_.begin(), marks_.end(), from + 1, before);
  auto last = std::lower_bound(marks_.begin(), marks_.end(), to - std::min<size_t>(to, 1), before);
  if (first == last) return piece;
  --last;
  piece.first = first->cut - from;
  piece.last = last->cut - from;
  piece.between = last->tokens - first->tokens;
  return piece;
}

void Haystack::CountTo(TokenCounter& counter, int64_t words) {
  if (!counter.has_cuts() || sentences_.empty()) return;
  const size_t end = Prefix(std::clamp<int64_t>(words, 1, this->words())).end;
  if (marks_.empty()) {
    const size_t first = FirstCut(joined_);
    if (first == std::string::npos) return;
    marks_.push_back({first, 0});
  }
  while (marks_.back().cut < end) {
    const Mark& last = marks_.back();
    const size_t next = FirstCut(joined_, last.cut + kMarkSpacing);
    if (next == std::string::npos) return;
    marks_.push_back({next, last.tokens + counter.Behind(std::string_view(joined_).substr(last.cut, next - last.cut))});
  }
}

}  // namespace iha::benchmarks::ruler
