#include "model/fake_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "common/digest.h"

namespace iha::model {
namespace {

std::vector<int32_t> Ids(size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; i++) ids.push_back(static_cast<int32_t>(i * i % 251));
  return ids;
}

// Logits of the last position, run in chunks of `chunk` over `blocks`.
std::vector<float> LastLogits(FakeModel& model, const std::vector<int32_t>& ids, size_t chunk,
                              const std::vector<int32_t>& blocks) {
  std::vector<float> logits(static_cast<size_t>(model.info().vocab_size));
  for (size_t start = 0; start < ids.size(); start += chunk) {
    const size_t count = std::min(chunk, ids.size() - start);
    const std::vector<int32_t> last = {static_cast<int32_t>(count) - 1};
    const Segment segment{std::span(ids).subspan(start, count), static_cast<int64_t>(start), blocks, last};
    const absl::Status status = model.Forward({&segment, 1}, logits, nullptr);
    EXPECT_TRUE(status.ok()) << status;
  }
  return logits;
}

TEST(FakeModel, LogitsDependOnTheWholePrefixAndNotOnChunksOrBlockNumbers) {
  FakeModel model({});
  ASSERT_TRUE(model.ReserveCache(8).ok());
  const std::vector<int32_t> ids = Ids(150);
  const std::vector<float> whole = LastLogits(model, ids, 150, {0, 1, 2});
  for (const size_t chunk : {1u, 7u, 64u}) EXPECT_EQ(LastLogits(model, ids, chunk, {7, 3, 5}), whole);
  for (const size_t position : {0u, 70u, 149u}) {
    std::vector<int32_t> other = ids;
    other[position]++;
    EXPECT_NE(LastLogits(model, other, 150, {0, 1, 2}), whole) << position;
  }
  FakeModel second({.seed = 2});
  ASSERT_TRUE(second.ReserveCache(8).ok());
  EXPECT_NE(LastLogits(second, ids, 150, {0, 1, 2}), whole);
}

TEST(FakeModel, AWrongOrStaleBlockChangesTheLogits) {
  FakeModel model({});
  ASSERT_TRUE(model.ReserveCache(8).ok());
  const std::vector<int32_t> ids = Ids(129);
  const std::vector<float> good = LastLogits(model, ids, 129, {0, 1, 2});
  std::vector<int32_t> other = ids;
  other[3]++;
  LastLogits(model, other, 129, {3, 4, 5});
  const auto last = [&](const std::vector<int32_t>& blocks) {
    std::vector<float> logits(257);
    const std::vector<int32_t> row = {0};
    const Segment segment{std::span(ids).subspan(128), 128, blocks, row};
    EXPECT_TRUE(model.Forward({&segment, 1}, logits, nullptr).ok());
    return logits;
  };
  EXPECT_EQ(last({0, 1, 2}), good);
  EXPECT_NE(last({3, 1, 2}), good) << "an early block of another sequence";
  EXPECT_NE(last({1, 0, 2}), good) << "swapped";
  ASSERT_TRUE(model.CopyBlock(0, 3).ok());
  EXPECT_EQ(last({3, 1, 2}), good) << "a copy is as good";
}

TEST(FakeModel, AGroupSeesItsWindow) {
  FakeModel model({.windows = {0, 64}});
  ASSERT_TRUE(model.ReserveCache(16).ok());
  const std::vector<int32_t> ids = Ids(200);
  const std::vector<float> good = LastLogits(model, ids, 200, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(LastLogits(model, ids, 33, {15, 14, 13, 12, 8, 9, 10, 11}), good);
  std::vector<int32_t> other = ids;
  other[3]++;
  LastLogits(model, other, 200, {8, 9, 10, 11, 12, 13, 14, 15});
  // Position 199 sees 136 and later in the second group: block 2 and 3 of it.
  const auto last = [&](const std::vector<int32_t>& blocks) -> absl::StatusOr<std::vector<float>> {
    std::vector<float> logits(257);
    const std::vector<int32_t> row = {0};
    const Segment segment{std::span(ids).subspan(199), 199, blocks, row};
    const absl::Status status = model.Forward({&segment, 1}, logits, nullptr);
    if (!status.ok()) return status;
    return logits;
  };
  EXPECT_EQ(*last({0, 1, 2, 3, kNoKvBlock, kNoKvBlock, 6, 7}), good);
  EXPECT_EQ(*last({0, 1, 2, 3, 12, 13, 6, 7}), good) << "out of sight";
  EXPECT_NE(*last({0, 1, 2, 3, 4, 5, 14, 7}), good);
  EXPECT_NE(*last({0, 1, 2, 3, 4, 5, 2, 7}), good) << "of the other group";
  EXPECT_EQ(last({0, 1, 2, 3, kNoKvBlock, kNoKvBlock, kNoKvBlock, 7}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(last({kNoKvBlock, 1, 2, 3, 4, 5, 6, 7}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(last({0, 1, 2, 3, 4, 5, 6}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FakeModel, BadSegmentsAreRefused) {
  FakeModel model({.context_tokens = 200});
  ASSERT_TRUE(model.ReserveCache(4).ok());
  std::vector<float> logits(257);
  const std::vector<int32_t> ids = {1}, bad_id = {257}, row = {0}, bad_row = {1};
  const std::vector<int32_t> blocks = {0, 1}, bad_blocks = {0, 4};
  const auto refused = [&](std::vector<Segment> segments) {
    return model.Forward(segments, logits, nullptr).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({{ids, 70, blocks, row}})) << "positions before 70 were never written";
  EXPECT_TRUE(refused({{bad_id, 0, blocks, row}}));
  EXPECT_TRUE(refused({{ids, 0, blocks, bad_row}}));
  EXPECT_TRUE(refused({{ids, 0, bad_blocks, row}}));
  EXPECT_TRUE(refused({{ids, 128, blocks, row}})) << "two blocks cover 128 positions";
  EXPECT_TRUE(refused({{ids, 200, blocks, row}})) << "beyond the context";
  EXPECT_TRUE(refused({{ids, 0, blocks, {}}, {ids, 0, blocks, row}})) << "block 0 is written twice";
  EXPECT_TRUE(refused({{ids, 0, blocks, {}}})) << "room for a row that nobody asked for";
  EXPECT_FALSE(refused({{ids, 0, blocks, row}}));
  EXPECT_FALSE(model.CopyBlock(0, 4).ok());
}

TEST(FakeModel, WordsReadLikeWorkedAnswers) {
  FakeModel model({.style = FakeStyle::kWords});
  ASSERT_TRUE(model.ReserveCache(16).ok());
  std::vector<int32_t> blocks(16);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::set<std::string> answers;
  for (int item = 0; item < 12; item++) {
    std::vector<int32_t> ids;
    for (const char c : "Question: " + std::to_string(item) + " and 3?\nAnswer:") ids.push_back(c);
    const size_t prompt = ids.size();
    while (ids.size() < prompt + 200) {
      const std::vector<float> logits = LastLogits(model, ids, ids.size(), blocks);
      const auto next = std::max_element(logits.begin(), logits.end()) - logits.begin();
      if (next == 256) break;
      ids.push_back(static_cast<int32_t>(next));
    }
    std::string text(ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end());
    text.resize(std::min(text.find("\n\n"), text.size()));
    ASSERT_TRUE(text.starts_with(" First there are ")) << text;
    const size_t mark = text.find("\n#### ");
    ASSERT_NE(mark, std::string::npos) << text;
    answers.insert(text.substr(mark + 6));
    EXPECT_EQ(answers.rbegin()->find_first_not_of("0123456789"), std::string::npos) << text;
  }
  EXPECT_GT(answers.size(), 3u);
}

TEST(FakeCheckpoint, LoadsWhatWasMadeAndNamesWhatIsWrong) {
  const std::string dir = ::testing::TempDir() + "fake_checkpoint";
  std::filesystem::remove_all(dir);
  const FakeOptions options{.context_tokens = 512, .seed = 5, .style = FakeStyle::kWords};
  ASSERT_TRUE(MakeFakeCheckpoint(dir, options).ok());
  auto model = FakeModel::Load(dir);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().context_tokens, 512);
  EXPECT_EQ((*model)->info().weights, *Sha256OfFile(dir + "/config.json"));
  FakeModel direct(options);
  ASSERT_TRUE(direct.ReserveCache(1).ok() && (*model)->ReserveCache(1).ok());
  EXPECT_EQ(LastLogits(**model, {1, 2, 3}, 3, {0}), LastLogits(direct, {1, 2, 3}, 3, {0}));

  std::ifstream file(dir + "/tokenizer.json");
  const auto tokenizer = nlohmann::json::parse(file, nullptr, false);
  const auto& vocab = tokenizer.at("model").at("vocab");
  EXPECT_EQ(vocab.size(), 256u);
  EXPECT_EQ(vocab.at("A"), 65);
  EXPECT_EQ(vocab.at("\xc4\xa0"), 32) << "a space is U+0120";
  EXPECT_EQ(vocab.at("\xc4\x8a"), 10) << "a newline is U+010A";

  std::ofstream(dir + "/config.json") << R"({"model_type": "llama"})";
  EXPECT_EQ(FakeModel::Load(dir).status().code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(dir + "/config.json") << R"({"model_type": "iha_fake", "vocab_size": 257})";
  EXPECT_EQ(FakeModel::Load(dir).status().message(),
            dir + "/config.json: max_position_embeddings is missing or not an integer");
  std::filesystem::remove(dir + "/config.json");
  EXPECT_EQ(FakeModel::Load(dir).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace iha::model
