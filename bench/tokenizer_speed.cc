// One tokenizer's speed on one file of texts, for bench/tokenizer_peer.py.
//
// usage: tokenizer_speed DIR TEXTS.json REPETITIONS
// TEXTS.json is a list of strings. Prints {"load_s", "encode_s", "decode_s", "tokens"}: medians over the repetitions of
// encoding and decoding all texts one after the other on one thread, CPU time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.h"

namespace {

template <class Work>
double MedianSeconds(int repetitions, Work work) {
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    const std::clock_t start = std::clock();
    work();
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: tokenizer_speed DIR TEXTS.json REPETITIONS\n");
    return 2;
  }
  std::ifstream file(argv[2]);
  const auto texts = nlohmann::json::parse(file).get<std::vector<std::string>>();
  const int repetitions = std::max(1, std::atoi(argv[3]));
  const double load = MedianSeconds(1, [&] { (void)iha::tokenizer::Tokenizer::Load(argv[1]); });
  const auto tokenizer = iha::tokenizer::Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", std::string(tokenizer.status().message()).c_str());
    return 3;
  }
  std::vector<std::vector<int32_t>> ids(texts.size());
  const double encode = MedianSeconds(repetitions, [&] {
    for (size_t i = 0; i < texts.size(); ++i) ids[i] = (*tokenizer)->Encode(texts[i]);
  });
  size_t tokens = 0, bytes = 0;
  const double decode = MedianSeconds(repetitions, [&] {
    for (const std::vector<int32_t>& row : ids) bytes += (*tokenizer)->Decode(row, false).size();
  });
  for (const std::vector<int32_t>& row : ids) tokens += row.size();
  std::printf("{\"load_s\": %.6f, \"encode_s\": %.6f, \"decode_s\": %.6f, \"tokens\": %zu, \"decoded\": %zu}\n", load,
              encode, decode, tokens, bytes);
  return 0;
}
