// Which step of the extraction answers, and what it takes.
#include <gtest/gtest.h>

#include "benchmarks/scoring/math/math_robust.h"

namespace iha::scoring {
namespace {

struct Row {
  const char* text;
  const char* answer;
  const char* step;
};

TEST(ExtractMath, StatementsOfManyLanguagesAndDigitsOfTheirScripts) {
  for (const char* text : {"答案是 7", "答案：７", "La respuesta es 7", "La réponse est 7", "Die Antwort ist 7",
                           "A resposta é 7", "Ответ: 7", "الإجابة هي ٧", "答えは７です", "정답은 7입니다", "उत्तर: ७",
                           "The final answer is $7$. I hope it is correct."}) {
    EXPECT_TRUE(JudgeMath(text, "7").equal()) << text << " gives " << ExtractMathAnswer(text).text;
    EXPECT_FALSE(JudgeMath(text, "8").equal()) << text;
  }
  EXPECT_EQ(ExtractMathAnswer("то есть ３．５").text, "3.5");
}

TEST(ExtractMath, EachStepByExample) {
  const Row rows[] = {
      {"so \\boxed{3}. Not \\boxed{4}", "4", "boxed"},
      {"\\[ \\boxed{42} \\]", "42", "boxed"},
      {"a \\boxed{\\frac{1}{2}} b", "\\frac{1}{2}", "boxed"},
      {"\\boxed{8{,}000}", "8{,}000", "boxed"},
      {"$\\boxed{1}$ and $\\boxed{2}$", "1, 2", "boxed"},
      {"$\\boxed{1} \\quad \\text{and} \\quad \\boxed{2}$", "1, 2", "boxed"},
      {"\\boxed{5}. So \\boxed{5}", "5", "boxed"},
      {"\\boxed{7} \\boxed{7}", "7", "boxed"},
      {"first \\boxed{1}. Final Answer: The final answer is $2$. I hope it is correct.", "$2$", "final answer"},
      {"**Final Answer**\n\\boxed{143}", "143", "boxed"},
      {"so \\boxed{x = 1", "x = 1", "unclosed box"},
      {"The answer is 5 because 7 > 3.", "5", "answer is"},
      {"Answer: $x=2$ or $x=3$.", "$x=2$ or $x=3$", "answer is"},
      {"\\frac{1}{2}", "\\frac{1}{2}", "whole text"},
      {"Evelyn", "Evelyn", "whole text"},
      {"We find that 12 boys came.", "12", "last expression"},
      {"so it has $x=4$ where $x$ is the length", "$x=4$", "last expression"},
      {"I can not say.", "I can not say.", "whole text"},
      {"", "", "none"},
      {"<answer>10</answer>", "10", "answer tag"},
      {"<think>5</think><answer>so \\boxed{\\frac12}</answer>", "\\frac12", "answer tag"},
      {"**42**", "42", "whole text"},
      {"#### 42", "42", "whole text"},
      {"```\n42\n```", "42", "whole text"},
      {"Yes, it converges.", "Yes", "whole text"},
      {"The function is even.", "even", "whole text"},
      {"12 noon", "12 noon", "whole text"},
      {"The probability is $\\frac{1}{6}$, which is about 0.167.", "$\\frac{1}{6}$", "last expression"},
      {"It takes 2 hours and 30 minutes.", "2 hours and 30 minutes", "last expression"},
      {"The meeting of all clubs is on March 5, 2020.", "March 5, 2020", "last expression"},
      {"The ratio is 3 to 2.", "3 to 2", "last expression"},
      {"The answer is no, because 3 is odd.", "no", "answer is"},
      {"\\boxed{\\left\\{\\begin{array}{l}x=1\\end{array}\\right.}",
       "\\left\\{\\begin{array}{l}x=1\\end{array}\\right.", "boxed"},
      {"Here's the solution:\n\n1. Let $x$ be the number that we look for.\n2. $3x = 21$\n3. $x = 7$\n\nSo it is "
       "**7**.",
       "7", "last expression"},
      {"答えは **12** です。", "12", "answer is"},
      {"所以 $x = 3$ 或 $x = -3$。", "$x = 3$ 或 $x = -3$", "last expression"},
  };
  for (const Row& row : rows) {
    const MathAnswer answer = ExtractMathAnswer(row.text);
    EXPECT_EQ(answer.text, row.answer) << row.text;
    EXPECT_EQ(answer.step, row.step) << row.text;
  }
}

TEST(ExtractMath, StatementsInLanguagesWhoseAnswersAreTheLastNumber) {
  for (const char* text :
       {"答案：12", "Die Antwort ist 12", "Ответ: x = 12", "정답은 12입니다", "A resposta é 12", "Odpowiedź: 12",
        "Cevap: 12", "Het antwoord is 12", "Odpověď je 12", "Η απάντηση είναι 12", "התשובה היא 12", "Jawaban: 12",
        "คำตอบคือ 12", "Svar: 12", "Vastaus on 12", "Sonuç 12'dir.", "Ans: 12", "Vậy đáp số là 12."}) {
    EXPECT_TRUE(JudgeMath(text, "12").equal()) << text << " gives " << ExtractMathAnswer(text).text;
    EXPECT_FALSE(JudgeMath(text, "13").equal()) << text;
  }
}

TEST(ExtractMath, ThePronounIIsNoChoice) {
  EXPECT_TRUE(JudgeMath("I choose C because 3 < 4.", "C").equal());
  EXPECT_FALSE(JudgeMath("I choose C because 3 < 4.", "I").equal());
}

TEST(ExtractMath, ABareAnswerExtractsToItself) {
  for (const char* text : {"5", "-\\frac{3}{4}", "(1, 2)", "x = 3", "3 \\text{ and } 4", "[0, 1)", "12 cm", "$2\\pi$",
                           "C", "June 20", "6:30 p.m.", "sqrt(5)/2", "2xy + 3", "\\text{Tuesday}", "28 percent"}) {
    EXPECT_EQ(ExtractMathAnswer(text).text, text);
  }
}

}  // namespace
}  // namespace iha::scoring
