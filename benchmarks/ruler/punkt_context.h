// punkt_context.h: Punkt's judgement of one possible sentence end, from the words around it. Pure; thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/ruler/punkt.h"

namespace iha::benchmarks::ruler {

// Character classes of NLTK's PunktLanguageVars (3.10.4).
bool EndsSentence(char32_t c);  // . ? !
bool IsNonWord(char32_t c);     // what may stand right behind a sentence's end
bool IsClosing(char32_t c);     // what still belongs to a sentence that has ended

class PunktContext {
 public:
  explicit PunktContext(const Punkt& punkt) : punkt_(punkt) {}

  // Whether any token of `context` but the last ends a sentence.
  bool HasBreak(std::u32string_view context);

 private:
  struct Token {
    std::u32string_view text;
    std::string type;  // lower case, or ##number##
    bool ends_in_period = false;
    bool sentence_break = false;
    bool abbreviation = false;
    bool ellipsis = false;
  };
  enum class StartsSentence { kYes, kNo, kUnknown };

  void Tokenize(std::u32string_view context);
  void FirstPass(Token& token) const;
  void SecondPass(Token& token, const Token& next) const;
  StartsSentence OrthographicHint(const Token& token) const;
  int OrthoContext(const std::string& type) const;

  const Punkt& punkt_;
  std::vector<Token> tokens_;  // reused from context to context
};

}  // namespace iha::benchmarks::ruler
