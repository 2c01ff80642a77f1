// Tokens that the backend draws (token_drawing.h) are those that the engine draws from its logits, and only the logits
// that somebody needs come over.
#include "model/token_drawing.h"

#include <gmock/gmock.h>

#include "model/device/emulated_backend.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

struct Counts {
  int64_t rows = 0;  // of logits wanted
  int64_t read = 0;  // of those, come over
};

// Another backend, which draws by itself if `drawing`: by its own way if it has one, else with the engine's sampler.
class Drawing final : public model::Backend, private model::TokenDrawing {
 public:
  Drawing(std::unique_ptr<model::Backend> backend, bool drawing, Counts& counts)
      : backend_(std::move(backend)), drawing_(drawing), counts_(counts) {}
  const model::ModelInfo& info() const override { return backend_->info(); }
  absl::Status ReserveCache(int32_t blocks) override { return backend_->ReserveCache(blocks); }
  absl::Status CopyBlock(int32_t from, int32_t to) override { return backend_->CopyBlock(from, to); }
  absl::Status Forward(std::span<const model::Segment> segments, std::span<float> logits,
                       model::Trace* trace) override {
    return backend_->Forward(segments, logits, trace);
  }
  model::TokenDrawing* drawing() override { return drawing_ ? this : nullptr; }

 private:
  absl::Status ForwardAndDraw(std::span<const model::Segment> segments, std::span<const model::RowDraw> draws,
                              std::span<int32_t> tokens) override {
    counts_.rows += static_cast<int64_t>(draws.size());
    if (backend_->drawing() != nullptr) return backend_->drawing()->ForwardAndDraw(segments, draws, tokens);
    const auto vocab = static_cast<size_t>(info().vocab_size);
    logits_.resize(draws.size() * vocab);
    IHA_RETURN_IF_ERROR(backend_->Forward(segments, logits_, nullptr));
    for (size_t i = 0; i < draws.size(); i++) {
      const auto row = std::span<const float>(logits_).subspan(i * vocab, vocab);
      const auto token = sampler_.Draw(row, draws[i].rules, draws[i].uniform);
      tokens[i] = draws[i].draw && token.ok() ? *token : model::kNoToken;
    }
    return absl::OkStatus();
  }
  absl::Status ReadLogits(std::span<const int32_t> rows, std::span<float> logits) override {
    counts_.read += static_cast<int64_t>(rows.size());
    if (backend_->drawing() != nullptr) return backend_->drawing()->ReadLogits(rows, logits);
    const auto vocab = static_cast<size_t>(info().vocab_size);
    for (size_t i = 0; i < rows.size(); i++) {
      std::copy_n(logits_.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(rows[i]) * vocab), vocab,
                  logits.begin() + static_cast<std::ptrdiff_t>(i * vocab));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<model::Backend> backend_;
  const bool drawing_;
  Counts& counts_;
  Sampler sampler_;
  std::vector<float> logits_;
};

std::map<SequenceId, GenerationResult> RunWith(std::unique_ptr<model::Backend> backend, bool drawing, Counts& counts,
                                               const std::vector<GenerationRequest>& requests) {
  const auto engine =
      MakeEngine({256, 16, 64, 64, true, true}, 24, std::make_unique<Drawing>(std::move(backend), drawing, counts));
  for (const GenerationRequest& request : requests) EXPECT_TRUE(engine->Submit(request).ok());
  return RunToEnd(*engine);
}

void ExpectSameResults(const std::map<SequenceId, GenerationResult>& got,
                       const std::map<SequenceId, GenerationResult>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [id, result] : want) {
    SCOPED_TRACE(static_cast<int64_t>(id));
    ExpectSameResult(got.at(id), result);
  }
}

TEST(TokenDrawing, ChangesNoResult) {
  const std::vector<GenerationRequest> requests = MixedRequests(31, 60);
  Counts none, counts;
  const auto want = RunWith(std::make_unique<model::FakeModel>(model::FakeOptions{}), false, none, requests);
  const auto got = RunWith(std::make_unique<model::FakeModel>(model::FakeOptions{}), true, counts, requests);
  ExpectSameResults(got, want);
  int64_t scored = 0;
  for (const auto& [id, result] : want) scored += static_cast<int64_t>(result.scores.size());
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(counts.read, scored) << "rows whose log-probabilities were asked for, and no others";
  EXPECT_GT(counts.rows, scored);
}

// Every rule, a request that nothing is left for, one whose every id is drawn from too few; beside scoring.
std::vector<GenerationRequest> SmallRequests(int32_t vocabulary) {
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 8; i++) {
    GenerationRequest& request = requests.emplace_back();
    request.prompt = model::testing::RandomIds(5, vocabulary, static_cast<uint32_t>(i / 2));
    request.sampling.max_new_tokens = 6;
    request.sampling.temperature = std::vector<double>{0, 0.7, 1.0}[i % 3];
    request.sampling.top_k = i % 4 == 1 ? 5 : 0;
    request.sampling.top_p = i % 3 == 1 ? 0.8 : 1;
    request.sample_index = i;
    for (int32_t id = 40; id < vocabulary; id++) request.eos.push_back(id);  // a third of all: some would be drawn
    request.min_new_tokens = 6;
    request.logprobs = i == 5;
    if (i == 2) request.allowed = {3, 20, 21, 22};
    if (i == 3) request.forbidden = {0, 1, 2, 3, 4, 5, 6};
    if (i == 6) request.continuation = {1, 2, 3};
  }
  for (int32_t id = 0; id < vocabulary; id++) requests[7].forbidden.push_back(id);
  return requests;
}

TEST(TokenDrawing, OfTheDeviceIsTheSamplers) {
  iha::testing::TempDir folder;
  constexpr int32_t kVocabulary = 60;
  ASSERT_TRUE(
      model::testing::WriteTinyCheckpoint(folder.path(), R"({"model_type": "llama", "vocab_size": 60, "hidden_size": 24,
                  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                  "head_dim": 8, "max_position_embeddings": 256, "rms_norm_eps": 1e-5})")
          .ok());
  const auto checkpoint = checkpoint::Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto run = [&](bool drawing, Counts& counts) {
    auto backend = model::OpenEmulatedBackend(*checkpoint, EmulatedNumerics());
    EXPECT_TRUE(backend.ok()) << backend.status();
    return RunWith(*std::move(backend), drawing, counts, SmallRequests(kVocabulary));
  };
  Counts none, counts;
  const auto want = run(false, none);
  const auto got = run(true, counts);
  ExpectSameResults(got, want);
  EXPECT_THAT(std::string(want.at(SequenceId{7}).status.message()), ::testing::HasSubstr("leave nothing"));
  EXPECT_EQ(counts.read, 6 + 3 + 1) << "log-probabilities, scores, and the row that says what is wrong";
  EXPECT_EQ(counts.rows, 6 * 6 + 3 + 1);
}

}  // namespace
}  // namespace iha::engine
