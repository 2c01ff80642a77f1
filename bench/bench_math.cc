// Pairs per second of math.robust on one core, by the wall and by CPU time: bench_math FILE [REPETITIONS]; FILE has a
// JSON object a line with "gold" and "answer" (tools/bench_math_pairs.py). tools/bench_math_verify.py measures
// Math-Verify over the same file.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
    const std::clock_t cpu_begin = std::clock();
    size_t equal = 0;
    for (const auto& [gold, answer] : pairs) equal += iha::scoring::JudgeMath(gold, answer).equal() ? 1 : 0;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double cpu = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
    const auto count = static_cast<double>(pairs.size());
    std::printf("math.robust: %zu pairs, %zu equal, %.0f pairs/s, %.0f pairs/s of CPU time\n", pairs.size(), equal,
                count / seconds, count / cpu);
  }
  return 0;
}
