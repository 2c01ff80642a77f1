// What a loaded checkpoint holds in memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "model/open_model.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

double ResidentMib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

// Packed weights replace the mapped file: they do not stay beside it.
TEST(LoadTest, ResidentMemoryIsThatOfTheWeights) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer build holds more memory than the program";
#endif
  const testing::TempDir dir;
  checkpoint::testing::WriteRandomCheckpoint(dir.path(), R"({"model_type": "llama", "vocab_size": 8192,
      "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16,
      "num_key_value_heads": 4, "tie_word_embeddings": true})",
                                             checkpoint::DType::kBF16);
  const auto checkpoint = checkpoint::Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const double weights_mib = static_cast<double>(checkpoint->parameters()) * 2 / (1 << 20);
  ASSERT_GT(weights_mib, 64);
  const double before = ResidentMib();
  const auto opened = OpenBackend(dir.path(), {.threads = 2, .numerics = {}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_LE(ResidentMib() - before, 1.15 * weights_mib);
}

}  // namespace
}  // namespace iha::model
