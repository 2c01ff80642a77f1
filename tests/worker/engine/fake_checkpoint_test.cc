// A fake checkpoint behind the real engine and the real tokenizer: text in, text out.

#include <filesystem>

#include "model/tokenizer/tokenizer.h"
#include "tests/worker/engine/engine_harness.h"
#include "worker/engine/tokenizer_decoder.h"

namespace iha::engine {
namespace {

TEST(FakeCheckpoint, AnswersQuestionsThroughItsTokenizer) {
  const std::string dir = ::testing::TempDir() + "fake_checkpoint_engine";
  std::filesystem::remove_all(dir);
  ASSERT_TRUE(model::MakeFakeCheckpoint(dir, {.style = model::FakeStyle::kWords}).ok());
  auto loaded = tokenizer::Tokenizer::Load(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::shared_ptr<const tokenizer::Tokenizer> tokens = *std::move(loaded);
  EXPECT_EQ(tokens->vocab_size(), 257);
  EXPECT_EQ(tokens->TokenId(tokens->eos_token()), 256);
  const std::string question = "Question: caf\xc3\xa9, 3 and 4?\nAnswer:";
  const std::vector<int32_t> ids = tokens->Encode(question);
  EXPECT_EQ(ids, Bytes(question)) << "ids are bytes";

  auto backend = model::FakeModel::Load(dir);
  ASSERT_TRUE(backend.ok()) << backend.status();
  EngineOptions options;
  options.kv_bytes = 64 * (*backend)->info().kv_block_bytes;
  auto engine = Engine::Create(
      *std::move(backend), [&] { return MakeTokenizerDecoder(tokens, true); }, options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  GenerationRequest request;
  request.prompt = ids;
  request.sampling.temperature = 1.0;
  request.sampling.max_new_tokens = 300;
  request.stops = {"Question:"};
  request.eos = {256};
  for (int32_t k = 0; k < 4; k++) {
    request.sample_index = k;
    ASSERT_TRUE((*engine)->Submit(request).ok());
  }
  const auto results = RunToEnd(**engine);
  ASSERT_EQ(results.size(), 4u);
  for (const auto& [id, result] : results) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_NE(result.text.find("\n#### "), std::string::npos) << result.text;
    // The stop string is in the tokens, and cut from the text where it starts.
    const std::string all = tokens->Decode(result.tokens, true);
    EXPECT_EQ(result.text, all.substr(0, all.find("Question:")));
    EXPECT_EQ(result.finish, all.ends_with("Question:") ? FinishReason::kStop : FinishReason::kEos);
  }
}

}  // namespace
}  // namespace iha::engine
