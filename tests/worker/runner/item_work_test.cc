// Items whose choices are scored: what is asked of the engine, under which key, and the one sample that comes of it.
#include "worker/runner/item_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/temp_dir.h"

namespace iha::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<int32_t>;

// Ids of the fake checkpoint are bytes.
class ChoiceItem : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.File("m"), {}).ok());
    ASSERT_TRUE(WriteFileAtomic(dir_.File("q"), R"({"question":"Q: ","choices":["a","bcd"],"answer":1})").ok());
    auto tokenizer = tokenizer::Tokenizer::Load(dir_.File("m"));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    encoder_ = std::make_unique<benchmarks::PromptEncoder>(*std::move(tokenizer));
    auto benchmark = benchmarks::OpenBenchmark({"choice:" + dir_.File("q"), {}}, "");
    ASSERT_TRUE(benchmark.ok()) << benchmark.status();
    benchmark_ = *std::move(benchmark);
    grant_.job.numerics_id = "n";
    grant_.job.entry.metrics = {"acc", "acc_norm"};
    grant_.weights = Sha256Of("w");
    grant_.tokenizer = Sha256Of("t");
  }
  ItemWork Prepare(int64_t context_tokens = 100) {
    auto work = PrepareItem(grant_, *benchmark_, *encoder_, {256}, context_tokens, 0);
    EXPECT_TRUE(work.ok()) << work.status();
    return *std::move(work);
  }

  iha::testing::TempDir dir_;
  std::unique_ptr<benchmarks::PromptEncoder> encoder_;
  std::unique_ptr<const benchmarks::Benchmark> benchmark_;
  LeaseGrant grant_;
};

TEST_F(ChoiceItem, IsOneSampleOfAllItsChoices) {
  ItemWork work = Prepare();
  ASSERT_EQ(work.unscored, Unscored::kScored);
  EXPECT_THAT(work.choices, ElementsAre(Continuation{{'Q', ':'}, {' ', ' ', 'a'}},
                                        Continuation{{'Q', ':'}, {' ', ' ', 'b', 'c', 'd'}}));
  EXPECT_THAT(
      work.keys,
      ElementsAre(ScoreKeyOf(
          {.weights = Sha256Of("w"), .tokenizer = Sha256Of("t"), .numerics_id = "n", .choices = work.choices})));
  EXPECT_FALSE(work.complete());
  work.AddScore(1, {-6, 5, true});  // the engine answers in any order
  EXPECT_FALSE(work.complete());
  work.AddScore(0, {-2.5, 3, false});
  ASSERT_TRUE(work.complete());
  EXPECT_TRUE(work.fresh[0]);
  const Generation& sample = *work.samples[0];
  EXPECT_EQ(sample.key, work.keys[0]);
  EXPECT_EQ(sample.text, "-2.5 3 0\n-6 5 1\n");
  EXPECT_EQ(sample.tokens, (Ids{' ', ' ', 'a', ' ', ' ', 'b', 'c', 'd'}));
  EXPECT_EQ(sample.prompt_tokens, 2);
  EXPECT_EQ(sample.finish, FinishReason::kEos);

  const auto result = FinishItem(grant_.job, *benchmark_, work);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->samples.size(), 1u);
  ASSERT_EQ(result->values.size(), 2u);
  EXPECT_EQ(result->values[0].score, (Score{0, 1})) << "-2.5 is the likelier";
  EXPECT_EQ(result->values[1].score, (Score{1, 1})) << "-6 / 3 is, by length";
}

// Nothing is drawn: how much would be, and from where, decides neither bits nor room.
TEST_F(ChoiceItem, SamplingDecidesNothing) {
  const GenKey key = Prepare().keys[0];
  grant_.job.entry.sampling.seed = 5;
  grant_.job.entry.sampling.max_new_tokens = 1000;
  const ItemWork work = Prepare();
  EXPECT_EQ(work.unscored, Unscored::kScored);
  EXPECT_EQ(work.keys[0], key);
}

TEST_F(ChoiceItem, FitsWhenItsLongestChoiceDoes) {
  // 2 + 5 tokens, the last of which is never run.
  EXPECT_EQ(Prepare(6).unscored, Unscored::kScored);
  const ItemWork work = Prepare(5);
  EXPECT_EQ(work.unscored, Unscored::kPromptTooLong);
  EXPECT_THAT(work.keys, IsEmpty());
  const auto result = FinishItem(grant_.job, *benchmark_, work);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->unscored, Unscored::kPromptTooLong);
  EXPECT_THAT(result->samples, IsEmpty());
  ASSERT_EQ(result->values.size(), 2u);
  EXPECT_EQ(result->values[1].unscored, Unscored::kPromptTooLong);
}

// What is drawn: 3 tokens and 5 more, the last of which is never run.
TEST_F(ChoiceItem, ADrawnItemFitsWhenAllButItsLastTokenDo) {
  ASSERT_TRUE(WriteFileAtomic(dir_.File("drawn"), R"({"question":"abc","answer":"7"})").ok());
  auto drawn =
      benchmarks::OpenBenchmark({"jsonl:" + dir_.File("drawn"), {{"prompt", "{question}"}, {"metric", "exact"}}}, "");
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  benchmark_ = *std::move(drawn);
  grant_.job.entry.sampling.max_new_tokens = 5;
  EXPECT_EQ(Prepare(7).unscored, Unscored::kScored);
  EXPECT_EQ(Prepare(7).prompt.size(), 3u);
  EXPECT_EQ(Prepare(6).unscored, Unscored::kPromptTooLong);
}

}  // namespace
}  // namespace iha::worker
