#include "benchmarks/ruler/punkt_context.h"

#include <utf8proc.h>

#include <algorithm>

#include "benchmarks/scoring/python_text.h"

namespace iha::benchmarks::ruler {
namespace {

// Bits of the orthographic context: how a type was written at the beginning of a sentence, in its middle, unknown.
constexpr int kUpper = 2 | 4 | 8;
constexpr int kMiddleUpper = 4;
constexpr int kLower = 16 | 32 | 64;
constexpr int kBeginningLower = 16;
constexpr const char* kNumberType = "##number##";

bool IsOneOf(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

// \w but for decimal digits.
bool IsInitialLetter(char32_t c) { return scoring::IsPythonWord(c) && !scoring::IsPythonDigit(c); }

bool IsUpper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool IsLower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }

bool StartsNoWord(char32_t c) { return IsOneOf(U"(\"`{[:;&#*@)}]-,", c); }

// -?[.,]?\d[\d,.-]*
bool IsNumber(std::u32string_view token) {
  size_t at = 0;
  if (at < token.size() && token[at] == '-') ++at;
  if (at < token.size() && IsOneOf(U".,", token[at])) ++at;
  if (at >= token.size() || !scoring::IsPythonDigit(token[at])) return false;
  return std::all_of(token.begin() + static_cast<std::ptrdiff_t>(at), token.end(),
                     [](char32_t c) { return scoring::IsPythonDigit(c) || IsOneOf(U",.-", c); });
}

std::string LowerCase(std::u32string_view text) {
  std::string out;
  utf8proc_uint8_t bytes[4];
  for (const char32_t c : text) {
    const auto size = utf8proc_encode_char(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  return out;
}

std::string WithoutPeriod(const std::string& type) {
  return type.size() > 1 && type.ends_with('.') ? type.substr(0, type.size() - 1) : type;
}

size_t RunLength(std::u32string_view text, char32_t c) {
  const size_t end = text.find_first_not_of(c);
  return end == std::u32string_view::npos ? text.size() : end;
}

// Length of "--...", "...", or ". . ." at the start of `text`; 0: none.
size_t MultiCharacterLength(std::u32string_view text) {
  if (text.empty() || (text[0] != '-' && text[0] != '.')) return 0;
  const size_t run = RunLength(text, text[0]);
  if (run >= 2) return run;
  if (text[0] == '-') return 0;
  size_t pairs = 0;  // of a period and white space
  while (2 * pairs + 1 < text.size() && text[2 * pairs] == '.' && scoring::IsPythonSpace(text[2 * pairs + 1])) ++pairs;
  const bool closed = 2 * pairs < text.size() && text[2 * pairs] == '.';
  if (closed && pairs >= 2) return 2 * pairs + 1;
  return pairs >= 3 ? 2 * pairs - 1 : 0;  // the last pair's own period closes it
}

bool EndsWord(std::u32string_view rest) {
  return rest.empty() || scoring::IsPythonSpace(rest[0]) || IsNonWord(rest[0]) || MultiCharacterLength(rest) > 0;
}

size_t TokenLength(std::u32string_view text) {
  if (const size_t multi = MultiCharacterLength(text)) return multi;
  if (StartsNoWord(text[0])) return 1;
  size_t end = 1;
  while (!EndsWord(text.substr(end)) && !(text[end] == ',' && EndsWord(text.substr(end + 1)))) ++end;
  return end;
}

}  // namespace

bool EndsSentence(char32_t c) { return c == '.' || c == '?' || c == '!'; }
bool IsNonWord(char32_t c) { return IsOneOf(U")\";}]*:@'({[?!\u2018\u2019\u201C\u201D\u00AB\u00BB", c); }
bool IsClosing(char32_t c) { return IsOneOf(U"\"')]}\u2018\u2019\u201C\u201D\u00AB\u00BB", c); }

bool PunktContext::HasBreak(std::u32string_view context) {
  Tokenize(context);
  for (Token& token : tokens_) FirstPass(token);
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    SecondPass(tokens_[i], tokens_[i + 1]);
    if (tokens_[i].sentence_break) return true;
  }
  return false;
}

void PunktContext::Tokenize(std::u32string_view context) {
  tokens_.clear();
  for (size_t at = 0; at < context.size();) {
    if (scoring::IsPythonSpace(context[at])) {
      ++at;
      continue;
    }
    const std::u32string_view text = context.substr(at, TokenLength(context.substr(at)));
    at += text.size();
    tokens_.push_back({.text = text,
                       .type = IsNumber(text) ? kNumberType : LowerCase(text),
                       .ends_in_period = text.back() == '.',
                       .sentence_break = false,
                       .abbreviation = false,
                       .ellipsis = false});
  }
}

void PunktContext::FirstPass(Token& token) const {
  if (token.text.size() == 1 && EndsSentence(token.text[0])) {
    token.sentence_break = true;
  } else if (token.text.size() >= 2 && RunLength(token.text, '.') == token.text.size()) {
    token.ellipsis = true;
  } else if (token.ends_in_period && !token.text.ends_with(U"..")) {
    const std::string word = LowerCase(token.text.substr(0, token.text.size() - 1));
    token.abbreviation =
        punkt_.abbreviations_.contains(word) || punkt_.abbreviations_.contains(word.substr(word.rfind('-') + 1));
    token.sentence_break = !token.abbreviation;
  }
}

int PunktContext::OrthoContext(const std::string& type) const {
  const auto it = punkt_.ortho_context_.find(type);
  return it == punkt_.ortho_context_.end() ? 0 : it->second;
}

PunktContext::StartsSentence PunktContext::OrthographicHint(const Token& token) const {
  if (token.text.size() == 1 && IsOneOf(U";:,.!?", token.text[0])) return StartsSentence::kNo;
  const int seen = OrthoContext(token.sentence_break ? WithoutPeriod(token.type) : token.type);
  if (IsUpper(token.text[0]) && (seen & kLower) != 0 && (seen & kMiddleUpper) == 0) return StartsSentence::kYes;
  if (IsLower(token.text[0]) && ((seen & kUpper) != 0 || (seen & kBeginningLower) == 0)) return StartsSentence::kNo;
  return StartsSentence::kUnknown;
}

void PunktContext::SecondPass(Token& token, const Token& next) const {
  if (!token.ends_in_period) return;
  const std::string type = WithoutPeriod(token.type);
  const std::string next_type = next.sentence_break ? WithoutPeriod(next.type) : next.type;
  const bool initial = token.text.size() == 2 && IsInitialLetter(token.text[0]);
  const auto join = [&] {
    token.sentence_break = false;
    token.abbreviation = true;
  };
  if (punkt_.collocations_.contains(type + "\t" + next_type)) return join();
  const StartsSentence hint = OrthographicHint(next);
  const bool next_upper = IsUpper(next.text[0]);
  if ((token.abbreviation || token.ellipsis) && !initial &&
      (hint == StartsSentence::kYes || (next_upper && punkt_.starters_.contains(next_type)))) {
    token.sentence_break = true;
    return;
  }
  if (!initial && type != kNumberType) return;
  if (hint == StartsSentence::kNo) return join();
  if (hint == StartsSentence::kUnknown && initial && next_upper && (OrthoContext(next_type) & kLower) == 0) join();
}

}  // namespace iha::benchmarks::ruler
