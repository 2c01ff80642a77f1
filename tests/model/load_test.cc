// What a loaded checkpoint holds in memory.
#include <gtest/gtest.h>
#include <malloc.h>

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

// By how much the resident memory grows, for each byte that the weights have at 16 bits. `widened`: stored as F32.
double ResidentOverHalf(bool widened) {
  const testing::TempDir dir;
  checkpoint::testing::WriteRandomCheckpoint(dir.File("half"), R"({"model_type": "llama", "vocab_size": 8192,
      "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16,
      "num_key_value_heads": 4, "tie_word_embeddings": true})",
                                             checkpoint::DType::kBF16);
  if (widened) checkpoint::testing::WriteWidened(dir.File("half"), dir.File("wide"));
  const std::string folder = dir.File(widened ? "wide" : "half");
  const auto checkpoint = checkpoint::Checkpoint::Open(folder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return 0;
  const double weights_mib = static_cast<double>(checkpoint->parameters()) * 2 / (1 << 20);
  EXPECT_GT(weights_mib, 64);
  ::malloc_trim(0);  // what making the checkpoint has freed is not there to be taken again
  const double before = ResidentMib();
  const auto opened = OpenBackend(folder, {.threads = 2, .numerics = {}});
  EXPECT_TRUE(opened.ok()) << opened.status();
  return (ResidentMib() - before) / weights_mib;
}

// Packed weights replace the mapped file: they do not stay beside it.
TEST(LoadTest, ResidentMemoryIsThatOfTheWeights) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer build holds more memory than the program";
#endif
  EXPECT_LE(ResidentOverHalf(false), 1.15);
}

// F32 weights that a training in bf16 has left behind take no more.
TEST(LoadTest, ResidentMemoryOfF32WeightsThatFit16Bits) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer build holds more memory than the program";
#endif
  const double ratio = ResidentOverHalf(true);
  EXPECT_LE(ratio, 1.15);
  EXPECT_GE(ratio, 0.9);  // else it measured memory that was there before
}

}  // namespace
}  // namespace iha::model
