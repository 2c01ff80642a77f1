// Pairs per second of math.robust on one core: bench_math FILE [REPETITIONS]; FILE has a JSON object a line with "gold"
// and "answer". tools/bench_math_verify.py measures Math-Verify over the same file.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/scoring/math/math_robust.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_math FILE [REPETITIONS]\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  std::vector<std::pair<std::string, std::string>> pairs;
  std::string line;
  while (std::getline(file, line)) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object()) pairs.emplace_back(row.value("gold", ""), row.value("answer", ""));
  }
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 5;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    size_t equal = 0;
    for (const auto& [gold, answer] : pairs) equal += iha::scoring::JudgeMath(gold, answer).equal() ? 1 : 0;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("math.robust: %zu pairs, %zu equal, %.0f pairs/s\n", pairs.size(), equal,
                static_cast<double>(pairs.size()) / seconds);
  }
  return 0;
}
