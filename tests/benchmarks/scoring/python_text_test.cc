// CPython's str methods; expected values printed by CPython 3.11.
#include "benchmarks/scoring/python_text.h"

#include <gtest/gtest.h>

namespace iha::scoring {
namespace {

TEST(PythonText, LowerIsThatOfWholeStrings) {
  EXPECT_EQ(PythonLower("Az[ 9"), "az[ 9");
  EXPECT_EQ(PythonLower("ÀÉ Ж ẞ Ǆ Ⅷ Ⓐ"), "àé ж ß ǆ ⅷ ⓐ");
  EXPECT_EQ(PythonLower("İstanbul"), "i̇stanbul");
  // A sigma at a word's end is the final one: case-ignorable characters between do not count.
  EXPECT_EQ(PythonLower("ΟΔΥΣΣΕΥΣ Σ ΑΣ. ΑΣ'Α Α'Σ' Σ'Α ªΣ"), "οδυσσευς σ ας. ασ'α α'ς' σ'α ªς");
  EXPECT_EQ(PythonLower("A\u0301Σ\u0301"), "a\u0301ς\u0301");
  EXPECT_EQ(PythonLower("a\xff\xc3Σ\xce"), "a\xff\xc3σ\xce");
  EXPECT_EQ(PythonLower(""), "");
}

TEST(PythonText, StripTakesWhiteSpaceOfAllScripts) {
  EXPECT_EQ(PythonStrip("\u00a0\x1c\u2028 a b \u3000\u0085"), "a b");
  EXPECT_EQ(PythonRstrip(" a \x1f"), " a");
  EXPECT_EQ(PythonStrip("\u200b \ufeff"), "\u200b \ufeff");  // neither is white space
  EXPECT_EQ(PythonStrip("\xff \xff"), "\xff \xff");
  EXPECT_EQ(PythonStrip(" \t"), "");
}

}  // namespace
}  // namespace iha::scoring
