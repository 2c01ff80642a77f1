// What a loaded checkpoint holds in memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <vector>

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

enum class Stored {
  kHalf,       // bf16
  kWidened,    // the same as F32
  kQuantised,  // F32, of as many levels as Q8_0 has
};

// The checkpoint in `from` with every matrix rounded to 255 levels of one scale for each row, as F32.
void WriteQuantised(const std::string& from, const std::string& to) {
  checkpoint::testing::WriteWidened(from, to);
  const auto checkpoint = checkpoint::Checkpoint::Open(to);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<std::vector<float>> values;
  std::vector<checkpoint::NamedTensor> tensors;
  values.reserve(checkpoint->tensors().size());
  for (const auto& [name, view] : checkpoint->tensors()) {
    std::vector<float>& data = values.emplace_back(static_cast<size_t>(view.elements()));
    ASSERT_TRUE(checkpoint::WidenToF32(view, data).ok());
    const size_t columns = static_cast<size_t>(view.shape.back());
    for (size_t i = 0; view.shape.size() == 2 && i < data.size(); i++) {
      const auto q = static_cast<float>(std::lround(data[i] * 127));  // one zero, as an integer has
      data[i] = q * (static_cast<float>(1024 + i / columns % 1024) * 0x1p-17F);
    }
    tensors.push_back({{name, checkpoint::DType::kF32, view.shape}, std::as_bytes(std::span(data))});
  }
  const absl::Status status = checkpoint::WriteSafetensors(to + "/model.safetensors", tensors);
  ASSERT_TRUE(status.ok()) << status;
}

// By how much the resident memory grows, for each byte that the weights have at 16 bits.
double ResidentOverHalf(Stored stored) {
  const testing::TempDir dir;
  checkpoint::testing::WriteRandomCheckpoint(dir.File("half"), R"({"model_type": "llama", "vocab_size": 8192,
      "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16,
      "num_key_value_heads": 4, "tie_word_embeddings": true})",
                                             checkpoint::DType::kBF16);
  if (stored == Stored::kWidened) checkpoint::testing::WriteWidened(dir.File("half"), dir.File("wide"));
  if (stored == Stored::kQuantised) WriteQuantised(dir.File("half"), dir.File("wide"));
  const std::string folder = dir.File(stored == Stored::kHalf ? "half" : "wide");
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
  EXPECT_LE(ResidentOverHalf(Stored::kHalf), 1.15);
}

// F32 weights that a training in bf16 has left behind take no more.
TEST(LoadTest, ResidentMemoryOfF32WeightsThatFit16Bits) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer build holds more memory than the program";
#endif
  const double ratio = ResidentOverHalf(Stored::kWidened);
  EXPECT_LE(ratio, 1.15);
  EXPECT_GE(ratio, 0.9);  // else it measured memory that was there before
}

// F32 weights of a quantised file: 12 bits each.
TEST(LoadTest, ResidentMemoryOfF32WeightsThatWereQuantised) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer build holds more memory than the program";
#endif
  const double ratio = ResidentOverHalf(Stored::kQuantised);
  EXPECT_LE(ratio, 0.88);  // 0.75, vectors, ends of huge pages, and what a process takes beside weights
  EXPECT_GE(ratio, 0.7);
}

}  // namespace
}  // namespace iha::model
