#include "benchmarks/ruler/punkt.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <optional>

#include "benchmarks/manifest.h"
#include "benchmarks/ruler/punkt_context.h"
#include "benchmarks/scoring/python_text.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

// Calls visit(line) for each line that is not empty.
template <class Visit>
absl::Status ForEachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    IHA_RETURN_IF_ERROR(visit(line));
  }
  return absl::OkStatus();
}

bool IsAsciiSpace(char32_t c) { return c == ' ' || (c >= 0x09 && c <= 0x0D); }

// A place where a sentence may end.
struct Candidate {
  size_t position = 0;       // of the closing character
  size_t word = 0;           // where the word before it begins
  size_t context_end = 0;    // behind what is looked at
  size_t next_sentence = 0;  // where the next sentence would begin
};

// What follows `position` if a sentence may end there.
std::optional<Candidate> CandidateAt(std::u32string_view text, size_t position) {
  const size_t next = position + 1;
  if (next >= text.size()) return std::nullopt;
  if (IsNonWord(text[next])) {
    return Candidate{.position = position, .word = 0, .context_end = next + 1, .next_sentence = next};
  }
  size_t begin = next;
  while (begin < text.size() && scoring::IsPythonSpace(text[begin])) ++begin;
  if (begin == next || begin == text.size()) return std::nullopt;
  size_t end = begin;
  while (end < text.size() && !scoring::IsPythonSpace(text[end])) ++end;
  return Candidate{.position = position, .word = 0, .context_end = end, .next_sentence = begin};
}

// Raw sentences: cut behind every candidate whose context has a break. Of several candidates in one word the last
// counts.
std::vector<SentenceSpan> RawSentences(const Punkt& punkt, std::u32string_view text) {
  std::vector<SentenceSpan> spans;
  PunktContext context(punkt);
  size_t begin = 0;
  const auto emit = [&](const Candidate& candidate) {
    if (!context.HasBreak(text.substr(candidate.word, candidate.context_end - candidate.word))) return;
    spans.push_back({begin, candidate.position + 1});
    begin = candidate.next_sentence;
  };
  std::optional<Candidate> previous;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!EndsSentence(text[at])) continue;
    std::optional<Candidate> candidate = CandidateAt(text, at);
    if (!candidate.has_value()) continue;
    const size_t from = previous.has_value() ? previous->position : 0;
    size_t space = at;
    while (space > from && !IsAsciiSpace(text[space])) --space;
    candidate->word = space > from ? space + 1 : (previous.has_value() ? previous->word : 0);
    if (previous.has_value() && previous->position <= candidate->word) emit(*previous);
    previous = candidate;
  }
  if (previous.has_value()) emit(*previous);
  size_t end = text.size();
  while (end > 0 && scoring::IsPythonSpace(text[end - 1])) --end;
  spans.push_back({begin, end});
  return spans;
}

// How much of the start of `sentence` still belongs to the one before it: closing characters (first) and the white
// space behind them (second); {0, 0} if none.
std::pair<size_t, size_t> ClosingRun(std::u32string_view sentence) {
  size_t run = 0;
  while (run < sentence.size() && IsClosing(sentence[run])) ++run;
  size_t behind = run;
  while (behind < sentence.size() && scoring::IsPythonSpace(sentence[behind])) ++behind;
  const bool ends = behind > run || run == sentence.size() || sentence.substr(run).starts_with(U"--");
  if (run == 0 || !ends) return {0, 0};
  return {run, behind};
}

}  // namespace

absl::StatusOr<Punkt> Punkt::Load(const std::string& data_root) {
  std::vector<std::string> texts;
  for (const char* name : {"abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt"}) {
    IHA_ASSIGN_OR_RETURN(texts.emplace_back(), ReadDataFile(data_root, fmt::format("ruler/punkt_tab/{}", name)));
  }
  return FromTexts(texts[0], texts[1], texts[2], texts[3]);
}

absl::StatusOr<Punkt> Punkt::FromTexts(std::string_view abbreviations, std::string_view collocations,
                                       std::string_view ortho_context, std::string_view sentence_starters) {
  Punkt punkt;
  const auto into = [](Words& words) {
    return [&words](std::string_view line) {
      words.emplace(line);
      return absl::OkStatus();
    };
  };
  IHA_RETURN_IF_ERROR(ForEachLine(abbreviations, into(punkt.abbreviations_)));
  IHA_RETURN_IF_ERROR(ForEachLine(collocations, into(punkt.collocations_)));
  IHA_RETURN_IF_ERROR(ForEachLine(sentence_starters, into(punkt.starters_)));
  IHA_RETURN_IF_ERROR(ForEachLine(ortho_context, [&](std::string_view line) {
    const size_t tab = line.find('\t');
    int flags = 0;
    const std::string number(tab == std::string_view::npos ? std::string_view() : line.substr(tab + 1));
    if (!absl::SimpleAtoi(number, &flags)) {
      return InvalidArgument("ortho_context.tab: found \"{}\", expected type TAB number", line);
    }
    punkt.ortho_context_.emplace(line.substr(0, tab), flags);
    return absl::OkStatus();
  }));
  return punkt;
}

std::vector<SentenceSpan> Punkt::Split(std::u32string_view text) const {
  const std::vector<SentenceSpan> raw = RawSentences(*this, text);
  std::vector<SentenceSpan> sentences;
  size_t shift = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    SentenceSpan sentence = {raw[i].begin + shift, raw[i].end};
    shift = 0;
    if (i + 1 < raw.size()) {
      const auto [run, behind] = ClosingRun(text.substr(raw[i + 1].begin, raw[i + 1].end - raw[i + 1].begin));
      if (run > 0) sentence.end = raw[i + 1].begin + run;
      shift = behind;
    }
    if (sentence.begin < sentence.end) sentences.push_back(sentence);
  }
  return sentences;
}

}  // namespace iha::benchmarks::ruler
