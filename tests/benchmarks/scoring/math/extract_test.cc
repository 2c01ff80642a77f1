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
      {"The function is even.", "even", "last sentence"},
      {"The number is rational.", "rational", "whole text"},
      {"12 noon", "12 noon", "whole text"},
      {"The probability is $\\frac{1}{6}$, which is about 0.167.", "$\\frac{1}{6}$", "last expression"},
      {"It is \\(2\\sqrt{3}\\), which is approximately \\(3.464\\).", "\\(2\\sqrt{3}\\)", "last expression"},
      {"Then\n\\begin{gathered} 2x = 24 \\\\ x = 12 \\end{gathered}",
       "\\begin{gathered} 2x = 24 \\\\ x = 12 \\end{gathered}", "last expression"},
      {"She needs, all in all and for a whole year, three dozen eggs.", "three dozen", "last expression"},
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

// Without delimiters an expression is more than its last number.
TEST(ExtractMath, PlainMathematicsIsTakenWhole) {
  const std::pair<const char*, const char*> rows[] = {
      {"The area is 4π.", "4π"},
      {"So the area of the circle is 4π square units.", "4π"},
      {"Area = 4*pi", "4*pi"},
      {"Thus the side is 2√3 cm.", "2√3"},
      {"So the value is sqrt(3)/2", "sqrt(3)/2"},
      {"So sin 60° = √3/2.", "√3/2"},
      {"So f(x) = x^2 + 1.", "f(x) = x^2 + 1"},
      {"That gives 2^10 possibilities.", "2^10"},
      {"That gives 2^10 = 1024 possibilities.", "1024"},
      {"She has 16 - 3 - 4 = 9 eggs.", "9"},
      {"The vertex is (2, -1).", "(2, -1)"},
      {"The domain is [2, 5).", "[2, 5)"},
      {"The set is {1, 2, 3}.", "{1, 2, 3}"},
      {"The possible values are 1, 2, and 3.", "1, 2, and 3"},
      {"So n can be 1, 2 or 3.", "1, 2 or 3"},
      {"The solutions are x = 1 and x = -1.", "x = 1 and x = -1"},
      {"The roots are ±1.", "±1"},
      {"So x > 3.", "x > 3"},
      {"So the limit is e^2.", "e^2"},
      {"The slope is −1/2.", "−1/2"},
      {"It is 3 1/2 cups.", "3 1/2"},
      {"It is 1.5 × 10^6 meters.", "1.5 × 10^6"},
      {"So the value is \\frac{3}{4}.", "\\frac{3}{4}"},
      {"It happens on the 5th of May.", "5th of May"},
      // What only stands beside a number is no part of it.
      {"There are 7 of them. (Check: 3 + 4 = 7.)", "7"},
      {"The room has 1,000.99m².", "1,000.99"},
      {"There are 5 boys and 3 girls.", "3"},
      {"He has 7 - a small number.", "7"},
      {"He gave these to her:\n- 5 of the apples", "5"},
      {"So he has 7!", "7"},
      {"1) He gave 5 of the apples to her", "5"},
      {"Then x = 2 and the sum is 7.", "7"},
      {"x^2 = 16, so x = 4.", "4"},
      {"So 2x = 20 games.", "20"},
      {"Then 20 = A.", "20"},
      {"The line is 2x + 3y = 6.", "2x + 3y = 6"},
      {"He needs 400g / 200g = 2 of them.", "2"},
      {"It takes 480 ft / 15 ft/sec = 32 sec to get there.", "32"},
      {"They earned $7/min because of it.", "7"},
      {"She knows 10 digits of pi.", "10"},
      {"They play it 90 times / 2 = 45 times a year.", "45"},
      {"It is %95.", "95"},
      {"Then 19/20 * 100 = %95.", "95"},
      {"The distance is 3*4m = 12m from there.", "12"},
      {"So x = log_2(5).", "log_2(5)"},
      {"Le total est de 1 250 €.", "1 250"},
      {"Les solutions sont x = 2 et x = 3.", "x = 2 et x = 3"},
      {"The probability is 5/12 (approximately 41.67%).", "5/12"},
      {"The distance is √20 = 2√5 ≈ 4.47 units.", "2√5"},
      {"So the line is y = -1/2 x + 3.", "y = -1/2 x + 3"},
      {"So the integral is ln 2.", "ln 2"},
      {"He has 10 apples and about 5 pears.", "5"},
      {"The value is sin(60°).", "sin(60°)"},
      {"The range is 2 < x.", "2 < x"},
  };
  for (const auto& [text, answer] : rows) EXPECT_EQ(ExtractMathAnswer(text).text, answer) << text;
}

// Beside one value a last expression is what it comes to.
TEST(ExtractMath, EquationsAndDerivationsComeToTheirLastMember) {
  const std::pair<const char*, const char*> rows[] = {
      {"Therefore, the side length of the triangle is $2a = 16 \\sqrt{3}.$", "16 \\sqrt{3}"},
      {"The largest of the three is $n+1=6$.", "6"},
      {"It factors as \\[ab + 5b+2a+10 = (a+5)(b+2).\\]", "(a+5)(b+2)"},
      {"We get\n\\begin{align*}\nf &= g \\\\\n&= p - q.\n\\end{align*}", "p - q"},
      {"So $36 - 7 - 2 - 10 = 17 = x$.", "17"},
      {"Because $x$ cannot be $0$, $x=5$.", "5"},
      {"Thus, $k-1=1,$ and $k=2.$", "2"},
      {"So it is $\\equiv 24 \\equiv 3 \\pmod{7}$", "3 \\pmod{7}"},
      {"So the midpoint is $\\left(\\frac{-5+3}{2},\\frac{5+7}{2}\\right)=(-1,6).$", "(-1,6)"},
      {"So it is $7$.\n\n[asy]\ndraw((0,0)--(3,4));\n[/asy]", "7"},
  };
  for (const auto& [text, value] : rows) {
    EXPECT_TRUE(JudgeMath(value, text).equal()) << text << " gives " << GradedAnswer(value, text).text;
    EXPECT_FALSE(JudgeMath("1234", text).equal()) << text;
  }
  EXPECT_EQ(GradedAnswer("6", "The largest is $n+1=6$.").text, "6");
  // Beside an equation it stays one; two statements are not their last.
  EXPECT_TRUE(JudgeMath("2x+y=6", "So the line is $2x + y = 6$.").equal());
  EXPECT_FALSE(JudgeMath("2", "So we have $x=1,y=2$").equal());
  EXPECT_TRUE(JudgeMath("(1,2)", "So we have $x=1$ and $y=2$.").equal());
}

TEST(ExtractMath, WhatTheLastSentenceSaysInWords) {
  const Row rows[] = {
      {"Since the lines are parallel, there is no solution.", "no solution", "last sentence"},
      {"Since 2 is not 3, the equation has no real solutions.", "no real solutions", "last sentence"},
      {"100 days after Sunday is a Tuesday.", "Tuesday", "last sentence"},
      {"So it will be Tuesday.", "Tuesday", "last sentence"},
      {"Therefore f is odd.", "odd", "last sentence"},
      {"Sally sold 60 boxes on Saturday.", "60", "last expression"},
      {"There are 2 values that make it undefined.", "2", "last expression"},
      {"The function is odd, since f(-x) = -f(x).", "odd", "last sentence"},
      {"Thus the expression is undefined.", "undefined", "last sentence"},
      {"We look at both sides. So the limit does not exist.", "does not exist", "last sentence"},
      {"No, because 3 is odd.", "No", "last sentence"},
      {"There is no solution for 5. We get 7.", "7", "last expression"},
      {"No, the sum is not 5. It is 7.", "7", "last expression"},
      {"no solution", "no solution", "whole text"},
      {"It is seven.", "seven", "whole text"},
      {"The final answer is \\boxed{5", "5", "unclosed box"},
      {"The area is $\\pi$ square units.", "$\\pi$", "last expression"},
  };
  for (const Row& row : rows) {
    const MathAnswer answer = ExtractMathAnswer(row.text);
    EXPECT_EQ(answer.text, row.answer) << row.text;
    EXPECT_EQ(answer.step, row.step) << row.text;
  }
}

TEST(ExtractMath, BracesAroundNothingAreNoAnswer) {
  for (const char* text :
       {"\\boxed{}", "The answer is $\\boxed{}$.", "$\\boxed{}$", "\\boxed{ }", "\\boxed{\\,}", "\\boxed{\\text{}}",
        "$$", "The final answer is $\\boxed{}$. I hope it is correct.", "\\(\\)", "{}", "<answer>\\boxed{}</answer>"}) {
    EXPECT_FALSE(ExtractMathAnswer(text).found()) << text << " gives " << ExtractMathAnswer(text).text;
    EXPECT_FALSE(JudgeMath("1", text).equal()) << text;
    EXPECT_FALSE(JudgeMath(text, "1").equal()) << text;
  }
  EXPECT_EQ(ExtractMathAnswer("\\boxed{12}, in a box: \\boxed{}").text, "12");
}

TEST(ExtractMath, WordsAboutAnAnswerAreNone) {
  for (const char* remark :
       {"The final answer is correct.", "I hope the final answer is correct.", "The final answer is verified.",
        "The final answer is in simplest form.", "The final answer is boxed above.", "Final answer: see above.",
        "The final answer is correct because 3 + 4 = 7.", "The final answer is already given above.",
        "The final answer is an integer.", "The final answer is simplified.", "The final answer is as stated.",
        "The final answer is clearly reasonable.", "The final answer is therefore boxed.",
        "The final answer is not 15.", "The final answer is in simplest form because 3 and 4 are coprime."}) {
    for (const char* before : {"\\boxed{12}. ", "So $x = \\boxed{12}$.\n\n", "The answer is 12. ", "Answer: 12\n",
                               "The final answer is 12. "}) {
      const std::string text = std::string(before) + remark;
      EXPECT_TRUE(JudgeMath("12", text).equal()) << text << " gives " << ExtractMathAnswer(text).text;
    }
  }
  EXPECT_EQ(ExtractMathAnswer("So x = 12. The answer is correct.").text, "12");
  EXPECT_EQ(ExtractMathAnswer("\\boxed{3}. The final answer is twelve.").text, "twelve");
  EXPECT_EQ(ExtractMathAnswer("\\boxed{3}. The final answer is B.").text, "B");
  EXPECT_EQ(ExtractMathAnswer("The final answer is even.").text, "even");
  EXPECT_EQ(ExtractMathAnswer("The answer is a circle.").text, "a circle");
  EXPECT_EQ(ExtractMathAnswer("The answer is not possible.").text, "not possible");
  EXPECT_EQ(ExtractMathAnswer("Rounded correctly, the answer is correct to two places: 3.14").text, "3.14");
}

TEST(ExtractMath, WhatTheAnswerIsNotIsNone) {
  const Row rows[] = {
      {"The answer isn't 15. It is 12.", "12", "last expression"},
      {"The answer is not 15. It is 12.", "12", "last expression"},
      {"It is 12. The answer is not 15.", "12", "last expression"},
      {"The answer is not 15 but 12.", "12", "answer is"},
      {"The answer isn't 15 but 12.", "12", "answer is"},
      {"The answer is not $A$ but $B$.", "$B$", "answer is"},
      {"Die Lösung ist nicht 15, sondern 12.", "12", "answer is"},
      {"Die Antwort lautet nicht 15, sondern 12.", "12", "answer is"},
      {"La réponse n'est pas 15 mais 12.", "12", "answer is"},
      {"La respuesta no es 15, sino 12.", "12", "answer is"},
      {"La risposta non è 15 ma 12.", "12", "answer is"},
      {"A resposta não é 15, mas sim 12.", "12", "answer is"},
      {"Het antwoord is niet 15 maar 12.", "12", "answer is"},
      {"Ответ не 15, а 12.", "12", "answer is"},
      {"答案不是15而是12。", "12", "answer is"},
      {"答案不是15而12", "12", "answer is"},
      {"答案并不是 15，而是 12。", "12", "answer is"},
      {"答えは15ではなく12です。", "12", "answer is"},
      {"정답은 15가 아니라 12입니다.", "12", "answer is"},
      {"So it's 12. Die Lösung ist nicht 15.", "12", "last expression"},
      {"Es ist 12. Das Ergebnis ist nicht 15.", "12", "last expression"},
      {"答案是12。答案不是15。", "12", "answer is"},
      {"答案是12，不是15。", "12", "answer is"},
      {"所以一共有12个，而不是15个。", "12", "last expression"},
      {"正确答案不是 A，而是 12。", "12", "answer is"},
      {"The set is not empty but 12 is in it.", "12", "last expression"},
      {"The answer is an integer. So 12.", "12", "last expression"},
      {"The answer is 12. The answer is not 15.", "12", "answer is"},
      {"The results are 3 and 4; the answer cannot be 15. We get $x = 12$.", "$x = 12$", "last expression"},
  };
  for (const Row& row : rows) {
    const MathAnswer answer = ExtractMathAnswer(row.text);
    EXPECT_EQ(answer.text, row.answer) << row.text;
    EXPECT_EQ(answer.step, row.step) << row.text;
  }
}

TEST(ExtractMath, QuantitiesAndRatiosInTheMiddleOfASentence) {
  const Row rows[] = {
      {"He walked for 2 hours and 30 minutes in total.", "2 hours and 30 minutes", "last expression"},
      {"The answer is 2 hours and 30 minutes in total.", "2 hours and 30 minutes", "answer is"},
      {"The person is 6 feet 2 inches tall.", "6 feet 2 inches", "last expression"},
      {"The trip takes 2 hours 30 minutes, which is long.", "2 hours 30 minutes", "last expression"},
      {"It took $2$ hours and $30$ minutes in all.", "$2$ hours and $30$ minutes", "last expression"},
      {"The answer is $2$ hours and $30$ minutes.", "$2$ hours and $30$ minutes", "answer is"},
      {"It took $2\\text{ hours }30\\text{ minutes}$ in all.", "$2\\text{ hours }30\\text{ minutes}$",
       "last expression"},
      {"The answer is 3 to 2 after that.", "3 to 2", "answer is"},
      {"The ratio of boys to girls is 3 to 2 after that.", "3 to 2", "last expression"},
      {"He has 2 dogs and 30 minutes.", "30", "last expression"},
  };
  for (const Row& row : rows) {
    const MathAnswer answer = ExtractMathAnswer(row.text);
    EXPECT_EQ(answer.text, row.answer) << row.text;
    EXPECT_EQ(answer.step, row.step) << row.text;
  }
  EXPECT_TRUE(JudgeMath("150", "He walked for 2 hours and 30 minutes in total.").equal());
  EXPECT_FALSE(JudgeMath("30", "He walked for 2 hours and 30 minutes in total.").equal());
  EXPECT_TRUE(JudgeMath("150", "It took $2$ hours and $30$ minutes in all.").equal());
  EXPECT_TRUE(JudgeMath("150", "It took $2\\text{ hours }30\\text{ minutes}$ in all.").equal());
}

TEST(ExtractMath, ALetterThatIsSaidToBeWrongIsNotChosen) {
  const std::pair<const char*, const char*> rows[] = {
      {"I eliminate B, so it is C.", "C"},
      {"The answer is not B. It is C.", "C"},
      {"The correct option is B because 3 > 2.", "B"},
      {"The correct option is A because 3 > 2.", "A"},
      {"The correct option is B because C is too large.", "B"},
      {"(A) is wrong, (B) is wrong, (D) is right.", "D"},
  };
  for (const auto& [text, letter] : rows) {
    for (const char* gold : {"A", "B", "C", "D"}) {
      EXPECT_EQ(JudgeMath(gold, text).equal(), std::string(gold) == letter) << text << " and " << gold;
    }
  }
  for (const char* text : {"B is wrong, the value is 2.", "Not B.", "Option B can't be."}) {
    EXPECT_FALSE(JudgeMath("B", text).equal()) << text;
  }
}

TEST(ExtractMath, WhatIsShownIsWhatIsGraded) {
  const char* chosen[] = {"The correct option is B because 3 > 2.", "B, since 3 > 2.", "So (B) holds, as 3 > 2",
                          "The best fit is B. There are 2."};
  for (const char* text : chosen) {
    EXPECT_EQ(GradedAnswer("B", text).text, "B") << text;
    EXPECT_TRUE(JudgeMath("B", text).equal()) << text;
    EXPECT_EQ(GradedAnswer("C", text).text, "B") << text;
    EXPECT_FALSE(JudgeMath("C", text).equal()) << text;
  }
  EXPECT_EQ(GradedAnswer("B", "B is wrong, the value is 2.").text, "2");
  EXPECT_FALSE(JudgeMath("B", "B is wrong, the value is 2.").equal());
  EXPECT_EQ(GradedAnswer("5", "So (B) holds, as 3 > 2").text, ExtractMathAnswer("So (B) holds, as 3 > 2").text);
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

// What explains an answer behind it, or belongs to the words of its sentence, is none.
TEST(ExtractMath, WhatFollowsAnAnswerOnlyExplainsIt) {
  const std::pair<const char*, const char*> rows[] = {
      {"We get $n=9$ (since $n>4$)", "9"},
      {"So $n=9$, because $-2$ is no length.", "9"},
      {"The value of n is 9, since -2 is too small.", "9"},
      {"The least such prime is 19, not 17.", "19"},
      {"The largest is 30, followed by 24 and 6.", "30"},
      {"Since 9 > 4 and because 4 > 2, it is 6.", "6"},
      {"$n = 8$\n\n[Check: 8 mod 3 = 2]", "8"},
      {"So $n = 8$.\n\n**Verification**: $8^2 = 64$.", "8"},
      {"Their sum is $3+4+5=12$. Note that it is attained at $(3,4,5)$.", "12"},
      {"Hence it takes $40$ seconds. (The other wheel turns exactly $4\\times 5=20$ times.)", "40"},
      {"The length is $3\\sqrt{2}$, which is approximately $4.243$.", "3\\sqrt{2}"},
      {"The remainder is 5 when divided by 8.", "5"},
      {"There are 14 such numbers between 10 and 90.", "14"},
      {"The tangent is $y = 2x - 1$ at $x = 1$.", "y=2x-1"},
      {"Hence it is $5$ for all $n \\ge 7.$", "5"},
      {"There are exactly 15 such pairs $(a,b)$.", "15"},
      {"So he walks 3+4=7 miles in the 40 minutes", "7"},
      {"They pay $4 + $5 = $9 for 2 cakes and 3 teas.", "9"},
      {"Each one gets 7 pears (42/6 = 7).", "7"},
      {"The area is 12 square meters (12 m\u00b2).", "12"},
      {"He sells 9 * 3 = $<<9*3=27>>27 every week", "27"},
      {"There are 5! ways to do it.", "120"},
      {"We get x = 6 (see step 3).", "6"},
      {"The total is 13 pears, as computed in 2 steps.", "13"},
      {"There are 3 such primes (2, 3, 5).", "3"},
      {"The value is \u00be", "\\frac34"},
      {"The value is \u2153.", "\\frac13"},
      {"It takes 2\u00bc hours.", "2.25"},
      {"She must sell 40 more to tie because 95 - 68 = 27", "27"},
      {"To do it in 5 years instead of 7, he pays 250-130 = $120 more", "120"},
      {"It takes 360/30 = 12 days for it to be 600 inches.", "12"},
      {"There are $60$ minutes, so it goes at $\\frac{240}{60}=4$ miles per hour.", "4"},
      {"The number of subsets is n\u00b2.", "n^2"},
      {"So the limit equals e\u00b3.", "e^3"},
      {"$p=23$ $\\blacksquare$", "23"},
      {"Hence $p=23$. QED", "23"},
      {"So the limit is infinity.", "\\infty"},
      {"So the domain is all real numbers.", "\\mathbb{R}"},
      {"Therefore, no, it is not.", "no"},
      {"\u6982\u7387\u662f\u4e09\u5206\u4e4b\u4e8c\u3002", "\\frac23"},
      {"\u89e3\u4e3ax=4\u6216x=6", "4,6"},
      {"It follows that \\[\\begin{vmatrix} a & b \\\\ c & d \\end{vmatrix}^2 = 81.\\]", "81"},
      {"Then $$3a = 4b \\qquad \\Rightarrow \\qquad \\frac{a}{b} = \\frac43.$$", "\\frac43"},
  };
  for (const auto& [text, value] : rows) {
    EXPECT_TRUE(JudgeMath(value, text).equal()) << text << " gives " << GradedAnswer(value, text).text;
    EXPECT_FALSE(JudgeMath("1234", text).equal()) << text;
  }
  // A statement behind such words still counts.
  EXPECT_EQ(ExtractMathAnswer("Of the 12 boys, 4+3=7 swim, and the rest is 5").text, "5");
  EXPECT_EQ(ExtractMathAnswer("We have 3 more than 8 = 11").text, "11");
}

TEST(ExtractMath, WhatJoinsBoxesMakesThemOneList) {
  for (const char* join : {"\u6216", "\u6216\u8005", "\u548c", " or ", " and ", "\\quad\\text{or}\\quad ", " ou ",
                           " oder ", ", ", " \u0438\u043b\u0438 ", " y ", "$, $"}) {
    const std::string text = "\\boxed{3}" + std::string(join) + "\\boxed{4}";
    EXPECT_TRUE(JudgeMath("3,4", text).equal()) << text << " gives " << ExtractMathAnswer(text).text;
    EXPECT_FALSE(JudgeMath("4", text).equal()) << text;
  }
  EXPECT_TRUE(JudgeMath("(2,3)", "So it is the point (2, 3).").equal());
}

TEST(ExtractMath, TheLetterThatIsStatedIsChosen) {
  const std::pair<const char*, const char*> rows[] = {
      {"Choice C is correct because A and B fail.", "C"},
      {"A and D are wrong. So B.", "B"},
      {"B or C? I choose C.", "C"},
      {"Neither A nor B; it is D.", "D"},
      {"Do\u011fru cevap C'dir.", "C"},
      {"\u6b63\u89e3\u306f\u30a4", "B"},
  };
  for (const auto& [text, letter] : rows) {
    for (const char* gold : {"A", "B", "C", "D"}) {
      EXPECT_EQ(JudgeMath(gold, text).equal(), std::string(gold) == letter) << text << " and " << gold;
    }
  }
}

TEST(ExtractMath, ABareAnswerExtractsToItself) {
  for (const char* text : {"5", "-\\frac{3}{4}", "(1, 2)", "x = 3", "3 \\text{ and } 4", "[0, 1)", "12 cm", "$2\\pi$",
                           "C", "June 20", "6:30 p.m.", "sqrt(5)/2", "2xy + 3", "\\text{Tuesday}", "28 percent"}) {
    EXPECT_EQ(ExtractMathAnswer(text).text, text);
  }
}

}  // namespace
}  // namespace iha::scoring
