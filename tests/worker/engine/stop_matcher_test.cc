#include "worker/engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace iha::engine {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> stops;
  std::vector<std::string> pieces;
  int stopped_after;  // pieces; -1 = never
  std::string text;
};

TEST(StopMatcher, Table) {
  const Case cases[] = {
      {"no stops", {}, {"a", "b"}, -1, "ab"},
      {"inside one piece", {"STOP"}, {"ab", "xSTOPy"}, 2, "abx"},
      {"a whole piece", {"STOP"}, {"ab", "STOP"}, 2, "ab"},
      {"over three pieces", {"STOP"}, {"aS", "TO", "Pb"}, 3, "a"},
      {"one byte at a time", {"\n\n"}, {"a", "\n", "b", "\n", "\n"}, 5, "a\nb"},
      {"at once", {"a"}, {"abc"}, 1, ""},
      {"a false start that restarts", {"aab"}, {"a", "a", "a", "b"}, 4, "a"},
      {"a prefix of a stop at the end stays", {"STOP"}, {"abST"}, -1, "abST"},
      {"the stop that starts first wins", {"cd", "bcde"}, {"abcdef"}, 1, "a"},
      {"but only stops complete by then", {"cd", "bcde"}, {"abcd"}, 1, "ab"},
      {"one stop inside another", {"xyz", "y"}, {"ax", "y", "z"}, 2, "ax"},
      {"two occurrences: the first", {"."}, {"a.b.c"}, 1, "a"},
      {"a stop longer than the text", {"abcdef"}, {"abc"}, -1, "abc"},
      {"empty pieces change nothing", {"ab"}, {"a", "", "b"}, 3, ""},
      {"a character of several bytes in two pieces", {"\xc3\xa9"}, {"caf\xc3", "\xa9!"}, 2, "caf"},
      {"bytes of another character do not match", {"\xa9"}, {"caf\xc3\xa8"}, -1, "caf\xc3\xa8"},
      {"NUL bytes", {std::string("\0b", 2)}, {std::string("a\0", 2), "b"}, 2, "a"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    StopMatcher matcher(c.stops);
    int stopped_after = -1;
    for (size_t i = 0; i < c.pieces.size() && stopped_after < 0; i++) {
      if (matcher.Append(c.pieces[i])) stopped_after = static_cast<int>(i) + 1;
    }
    EXPECT_EQ(stopped_after, c.stopped_after);
    EXPECT_EQ(matcher.text(), c.text);
  }
}

// The text and the cut may not depend on where pieces begin, unless the stops overlap.
TEST(StopMatcher, AnySplitGivesTheSameCut) {
  const std::string text = "one two Question: three";
  for (size_t i = 0; i <= text.size(); i++) {
    for (size_t j = i; j <= text.size(); j++) {
      StopMatcher matcher({"Question:", "\n\n"});
      bool stopped = false;
      for (const std::string& piece : {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) {
        if (!stopped) stopped = matcher.Append(piece);
      }
      ASSERT_TRUE(stopped);
      ASSERT_EQ(matcher.text(), "one two ");
    }
  }
}

}  // namespace
}  // namespace iha::engine
