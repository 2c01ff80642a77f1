// What a text says that the answer is not (extract_impl.h): "The answer is not 15 but 12."
#include <algorithm>
#include <array>
#include <vector>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kWindow = 20000;  // bytes at the end of a text that are read
constexpr size_t kLongest = 60;    // bytes of what is denied
constexpr int kMost = 100;         // denials of one text

struct Denial {
  string_view negation;
  string_view says;  // the same without its "not"
  std::array<string_view, 6> contrasts;
};
constexpr std::array<string_view, 6> kEnglish = {", but rather ", " but rather ", ", but ",
                                                 " but ",         ", it is ",     "; it is "};
constexpr std::array<string_view, 6> kGerman = {", sondern ", " sondern "};
constexpr std::array<string_view, 6> kFrench = {" mais plut\u00f4t ", ", mais ", " mais "};
constexpr std::array<string_view, 6> kSpanish = {", sino que es ", " sino que es ", ", sino ", " sino "};
constexpr std::array<string_view, 6> kItalian = {", ma ", " ma ", ", bens\u00ec ", " bens\u00ec "};
constexpr std::array<string_view, 6> kPortuguese = {", mas sim ", " mas sim ", ", e sim ",
                                                    " e sim ",    ", mas ",    " mas "};
// Full-width commas come as ASCII.
constexpr std::array<string_view, 6> kChinese = {",而是", "而是", ",是", ",而", "而"};
// Longer ones in front of those that they end with.
constexpr std::array<Denial, 19> kDenials = {{{" is not ", " is ", kEnglish},
                                              {" isn't ", " is ", kEnglish},
                                              {" isn\u2019t ", " is ", kEnglish},
                                              {" was not ", " was ", kEnglish},
                                              {" wasn't ", " was ", kEnglish},
                                              {" cannot be ", " is ", kEnglish},
                                              {" can't be ", " is ", kEnglish},
                                              {" could not be ", " is ", kEnglish},
                                              {" ist nicht ", " ist ", kGerman},
                                              {" lautet nicht ", " lautet ", kGerman},
                                              {" n'est pas ", " est ", kFrench},
                                              {" n\u2019est pas ", " est ", kFrench},
                                              {" no es ", " es ", kSpanish},
                                              {" non \u00e8 ", " \u00e8 ", kItalian},
                                              {" n\u00e3o \u00e9 ", " \u00e9 ", kPortuguese},
                                              {" is niet ", " is ", {", maar ", " maar "}},
                                              {"ответ не ", "ответ ", {", а ", " а "}},
                                              {"并不是", "是", kChinese},
                                              {"不是", "是", kChinese}}};
// "15ではなく12": the mark behind what is denied, and the particle in front of it.
constexpr std::array<std::pair<string_view, string_view>, 4> kBehind = {
    {{"ではなく", "は"}, {"じゃなくて", "は"}, {"가 아니라", "은"}, {"이 아니라", "은"}}};
// What a denial may be said of without more: there it leaves no answer.
constexpr std::array<string_view, 15> kAnswers = {"answer",   "result",   "solution", "antwort",   "ergebnis",
                                                  "lösung",   "réponse",  "résultat", "respuesta", "resultado",
                                                  "solución", "risposta", "resposta", "antwoord",  "答案"};

bool IsLone(string_view text) { return text.size() == 1 || (text.size() == 3 && text[0] == '(' && text[2] == ')'); }

bool HoldsValue(string_view text) { return IsLone(text) || text.find_first_of("0123456789$\\") != kNone; }

// What is put in the place of `denied`: mathematics, or a lone letter for one.
bool Replaces(string_view denied, string_view text) {
  const size_t word = text.find_first_of(" .,;\n");
  if (IsLone(denied) && IsAsciiLetter(text[0])) return IsLone(text.substr(0, word));
  return !IsAsciiLetter(text[0]) || text.substr(0, word).find_first_of("0123456789\\") != kNone;
}

// Where a sentence that goes on at `from` ends.
size_t SentenceEnd(string_view text, size_t from) {
  size_t end = text.size();
  for (const string_view stop : {". ", ".\n", "\n", "? ", "! ", "。"}) end = std::min(end, text.find(stop, from));
  return end;
}

struct Cut {
  size_t begin = 0;
  size_t end = 0;
  string_view says;  // in its place
};

// "is not 15 but 12" -> "is 12"; nullopt where nothing is put in the place of what is denied.
std::optional<Cut> Corrected(string_view lower, size_t at, const Denial& denial) {
  const size_t from = at + denial.negation.size();
  const size_t end = SentenceEnd(lower, from);
  size_t first = kNone;
  size_t behind = kNone;
  for (const string_view contrast : denial.contrasts) {
    if (contrast.empty()) continue;
    const size_t found = lower.find(contrast, from);
    if (found >= first) continue;
    first = found;
    behind = found + contrast.size();
  }
  if (first == kNone || first - from > kLongest || behind >= end) return std::nullopt;
  const string_view denied = TrimSpaces(lower.substr(from, first - from));
  if (!HoldsValue(denied) || !Replaces(denied, lower.substr(behind))) return std::nullopt;
  return Cut{at, behind, denial.says};
}

std::optional<Cut> CorrectedBehind(string_view lower, size_t at, string_view mark, string_view particle) {
  const size_t window = at > kLongest ? at - kLongest : 0;
  const size_t found = lower.substr(0, at).rfind(particle);
  if (found == kNone || found < window) return std::nullopt;
  const size_t begin = found + particle.size();
  if (!HoldsValue(TrimSpaces(lower.substr(begin, at - begin)))) return std::nullopt;
  return Cut{begin, at + mark.size(), ""};
}

// In order of the text, none within another.
std::string WithoutCuts(string_view text, std::vector<Cut> cuts) {
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.begin < b.begin; });
  std::string out;
  size_t kept = 0;
  for (const Cut& cut : cuts) {
    if (cut.begin < kept) continue;
    out += text.substr(kept, cut.begin - kept);
    out += cut.says;
    kept = cut.end;
  }
  out += text.substr(kept);
  return out;
}

// Calls `visit(at, denial)` for each "is not", up to kMost of a kind.
template <class Visit>
void ForEachDenial(string_view lower, const Visit& visit) {
  for (const Denial& denial : kDenials) {
    size_t at = lower.find(denial.negation);
    for (int i = 0; at != kNone && i < kMost; ++i) {
      visit(at, denial);
      at = lower.find(denial.negation, at + 1);
    }
  }
}

std::string Lower(string_view text, size_t& offset) {
  offset = text.size() > kWindow ? text.size() - kWindow : 0;
  return std::string(offset, ' ') + LowerLetters(text.substr(offset));
}

}  // namespace

std::string WithCorrections(string_view text) {
  size_t offset = 0;
  const std::string lower = Lower(text, offset);
  std::vector<Cut> cuts;
  ForEachDenial(lower, [&](size_t at, const Denial& denial) {
    if (const auto cut = Corrected(lower, at, denial)) cuts.push_back(*cut);
  });
  for (const auto& [mark, particle] : kBehind) {
    size_t at = lower.find(mark);
    for (int i = 0; at != kNone && i < kMost; ++i) {
      if (const auto cut = CorrectedBehind(lower, at, mark, particle)) cuts.push_back(*cut);
      at = lower.find(mark, at + 1);
    }
  }
  return cuts.empty() ? std::string(text) : WithoutCuts(text, std::move(cuts));
}

std::string WithoutDenials(string_view text) {
  size_t offset = 0;
  const std::string lower = Lower(text, offset);
  std::vector<Cut> cuts;
  ForEachDenial(lower, [&](size_t at, const Denial& denial) {
    const string_view before = string_view(lower).substr(0, at);
    const bool of_answer =
        denial.says == "ответ " ||
        std::any_of(kAnswers.begin(), kAnswers.end(), [&](string_view noun) { return before.ends_with(noun); });
    if (of_answer) cuts.push_back({at, std::min(SentenceEnd(lower, at), lower.find(" but ", at)), ""});
  });
  return cuts.empty() ? std::string(text) : WithoutCuts(text, std::move(cuts));
}

}  // namespace iha::scoring::math
