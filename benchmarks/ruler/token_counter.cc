#include "benchmarks/ruler/token_counter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "benchmarks/ruler/text.h"

namespace iha::benchmarks::ruler {
namespace {

// Stands before a part that is counted alone, so that the part is not at the start of a text: some tokenizers treat
// that specially.
constexpr std::string_view kAnchor = "a";
constexpr size_t kMaxKnownPart = 64, kMaxKnownParts = size_t{1} << 16;
// A tail without a mark is counted when it gets this long, so that no count has to start far back.
constexpr size_t kLongTail = 2048;

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// A vocabulary's text with its stand-ins for a space (byte-level "Ġ", SentencePiece "▁") as spaces.
std::string WithSpaces(const std::string& text) { return Replaced(Replaced(text, "\u0120", " "), "\u2581", " "); }

// Whether any token could lie on both sides of a cut.
bool HasTokenAcrossCuts(const tokenizer::Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string text = WithSpaces(tokenizer.TokenText(id).value_or(""));
    for (size_t at = 1; at < text.size(); ++at) {
      if (text[at] == ' ' && MayCut(text[at - 1], 'a')) return true;
    }
  }
  return false;
}

constexpr std::array<std::string_view, 4> kSamples = {
    "Some special magic numbers are hidden within the following text. Make sure to memorize it. I will quiz you about "
    "the numbers afterwards.\nOne of the special magic numbers for early-ATM is: 1234567. It's 1998, isn't it?",
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\nThe grass is green. "
    "VAR ABCDE = 12345\nVAR FGHIJ = VAR ABCDE \nThe sky is blue.",
    "1. viability 2. skiing 3. blue-eyed 4. 10th 5. ice cream ... abcdef ... ghijkl Question: what? \"Quoted,\" he "
    "said; "
    "(so) ends.",
    "Document 12:\nThe Norman dynasty (c. 911) had a major, political 'impact' on 9,000 caf\u00e9s!\n\nDocument 3:\nIn "
    "1066: 3.5 and e3e70682-c209-4cac-a29f-6fbed82c07cd is \u201cold\u201d \u2014 or so. \u4f60\u597d A b."};

}  // namespace

bool MayCut(char before, char after) {
  const auto is_mark = [](char c, std::string_view marks) { return marks.find(c) != std::string_view::npos; };
  return (IsLetterOrDigit(before) || is_mark(before, ".,:;?!\"')")) &&
         (IsLetterOrDigit(after) || is_mark(after, ".\"'("));
}

size_t FirstCut(std::string_view text, size_t from) {
  for (size_t at = text.find(' ', std::max<size_t>(from, 1)); at != std::string_view::npos;
       at = text.find(' ', at + 1)) {
    if (at + 1 < text.size() && MayCut(text[at - 1], text[at + 1])) return at;
  }
  return std::string_view::npos;
}

size_t LastCut(std::string_view text) {
  for (size_t at = text.rfind(' '); at != std::string_view::npos && at > 0; at = text.rfind(' ', at - 1)) {
    if (at + 1 < text.size() && MayCut(text[at - 1], text[at + 1])) return at;
  }
  return std::string_view::npos;
}

TokenCounter::TokenCounter(std::shared_ptr<const tokenizer::Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
  anchor_tokens_ = Whole(kAnchor);
  has_cuts_ = tokenizer_ == nullptr || !HasTokenAcrossCuts(*tokenizer_);
  has_cuts_ = has_cuts_ && SamplesAgree();
}

bool TokenCounter::SamplesAgree() {
  for (const std::string_view sample : kSamples) {
    size_t cut = FirstCut(sample);
    int64_t sum = Whole(sample.substr(0, cut));
    while (cut != std::string_view::npos) {
      const size_t next = FirstCut(sample, cut + 1);
      sum += Behind(sample.substr(cut, next - cut));
      cut = next;
    }
    if (sum != Whole(sample)) return false;
  }
  return true;
}

int64_t TokenCounter::Whole(std::string_view text) const {
  if (tokenizer_ == nullptr) return CountWords(text);
  return static_cast<int64_t>(tokenizer_->Encode(text).size());
}

int64_t TokenCounter::Behind(std::string_view part) {
  const auto count = [&] { return Whole(std::string(kAnchor).append(part)) - anchor_tokens_; };
  if (part.size() > kMaxKnownPart) return count();
  std::string key(part);
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  if (known_.size() >= kMaxKnownParts) known_.clear();
  return known_.emplace(std::move(key), count()).first->second;
}

CountedPiece TokenCounter::Measure(std::string_view text) {
  CountedPiece piece = {.text = text, .first = FirstCut(text), .last = LastCut(text), .between = 0};
  if (has_cuts_ && piece.first < piece.last) piece.between = Behind(text.substr(piece.first, piece.last - piece.first));
  return piece;
}

int64_t CountedText::From(const Mark& mark, size_t end) const {
  const std::string_view part = std::string_view(text_).substr(mark.cut, end - mark.cut);
  return mark.tokens + (mark.cut == 0 ? counter_->Whole(part) : counter_->Behind(part));
}

void CountedText::Settle(size_t end) {
  if (end > marks_.back().cut) marks_.push_back({end, From(marks_.back(), end)});
}

void CountedText::Append(std::string_view text) {
  text_ += text;
  if (!counter_->has_cuts() || text_.size() - marks_.back().cut < kLongTail) return;
  const size_t cut = LastCut(std::string_view(text_).substr(marks_.back().cut));
  if (cut != std::string_view::npos) Settle(marks_.back().cut + cut);
}

void CountedText::Append(const CountedPiece& piece) {
  if (!counter_->has_cuts() || piece.first == std::string_view::npos) return Append(piece.text);
  const size_t base = text_.size();
  text_ += piece.text;
  Settle(base + piece.first);
  if (piece.last > piece.first) marks_.push_back({base + piece.last, marks_.back().tokens + piece.between});
}

void CountedText::AppendPart(std::string_view part, int64_t tokens) {
  const bool at_cut = counter_->has_cuts() && !text_.empty() && part.size() > 1 && MayCut(text_.back(), part[1]);
  if (!at_cut) return Append(part);
  if (part_end_ == text_.size() && part_end_ > 0) {
    marks_.back() = {part_end_, marks_.back().tokens + part_tokens_};
  } else {
    Settle(text_.size());
  }
  text_ += part;
  part_end_ = text_.size();
  part_tokens_ = tokens;
}

int64_t CountedText::Tokens() { return From(marks_.back(), text_.size()); }

int64_t CountedText::TokensBefore(size_t bytes) const {
  const auto behind = std::upper_bound(marks_.begin(), marks_.end(), bytes,
                                       [](size_t wanted, const Mark& mark) { return wanted < mark.cut; });
  return From(*(behind - 1), bytes);
}

}  // namespace iha::benchmarks::ruler
