// pairs.h: the table of labelled pairs that the tests of math.robust share.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace iha::scoring {

struct Pair {
  int line = 0;
  bool equal = false;
  std::string left;
  std::string right;
};

inline std::vector<Pair> ReadPairs() {
  const auto trim = [](std::string text) {
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::ifstream file("tests/benchmarks/scoring/math/pairs.txt");
  std::vector<Pair> pairs;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const size_t middle = line.find("||");
    if (line.empty() || line[0] == '#' || middle == std::string::npos) continue;
    pairs.push_back({number, line[0] == '=', trim(line.substr(1, middle - 1)), trim(line.substr(middle + 2))});
  }
  return pairs;
}

}  // namespace iha::scoring
