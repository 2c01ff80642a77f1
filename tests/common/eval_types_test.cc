// Expected digests: Python's hashlib.sha256 over the byte layout of canonical.h, field by field as eval_types.cc lists
// them. A digest that changes here changes the identity of stored sweeps, jobs or generations.
#include "common/eval_types.h"

#include <functional>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace iha {
namespace {

Digest Filled(uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

SamplingParams Sampling() {
  return {.temperature = 0.6, .top_p = 0.95, .top_k = 20, .samples = 5, .seed = 99, .max_new_tokens = 256};
}

SweepSpec Sweep() {
  SweepEntry entry;
  entry.benchmark = {.name = "gsm8k", .options = {{"prompt", "chat"}, {"fewshot", "8"}}};
  entry.sampling = Sampling();
  entry.limit = 10;
  entry.metrics = {"gsm8k.robust", "maj@5?metric=gsm8k.robust"};
  SweepSpec spec;
  spec.models = {{.name = "a/b", .weights_digest = ""}, {.name = "c", .weights_digest = Filled(0xAB).Hex()}};
  spec.entries = {entry};
  spec.run_tag = "tag";
  return spec;
}

JobSpec Job() {
  JobSpec job;
  job.sweep = IdOf(Sweep());
  job.model_index = 1;
  job.model = Sweep().models[1];
  job.entry = Sweep().entries[0];
  job.benchmark_version = "gsm8k/3";
  job.grader_version = "g1";
  job.items = 10;
  job.numerics_id = NumericsSpec().Id();
  job.data_digest = Filled(1);
  job.prompt_digest = Filled(2);
  return job;
}

GenKeyInputs KeyInputs() {
  return {.weights = Filled(1),
          .tokenizer = Filled(2),
          .numerics_id = NumericsSpec().Id(),
          .prompt = {5, 6, 7},
          .sampling = Sampling(),
          .stops = {"\n\n"},
          .eos = {2},
          .sample_index = 3};
}

ScoreKeyInputs ScoreInputs() {
  return {.weights = Filled(1),
          .tokenizer = Filled(2),
          .numerics_id = NumericsSpec().Id(),
          .choices = {{.context = {5, 6}, .tokens = {7}}, {.context = {5, 6}, .tokens = {8, 9}}}};
}

ItemResult Item() {
  ItemResult item;
  item.index = 4;
  item.item_id = "gsm8k/4";
  item.samples = {
      {.generation = KeyOf(KeyInputs()),
       .grades = {{.metric = "gsm8k.robust", .extracted = "42", .valid = true, .score = {1, 1}, .reason = "equal"}}}};
  item.values = {{.metric = "gsm8k.robust", .score = {1, 2}, .winner = "42", .tie = {0, 1}, .invalid = 1}};
  return item;
}

TEST(EvalTypes, GoldenDigests) {
  EXPECT_EQ(NumericsSpec().Id(), "cpu-exact/2/weights=stored/act=f32/kv=f32");
  EXPECT_EQ(IdOf(Sweep()).Hex(), "b93e2d57db4cbeb7ced55030959b14363acac50649f9839800b6c69d611c33d6");
  EXPECT_EQ(IdOf(Job()).Hex(), "282bd6c2866c0a7669673c47759337892ec5b97a2c3bcb4f95ac8882ac17f1bb");
  EXPECT_EQ(KeyOf(KeyInputs()).Hex(), "1c8a685eb003ad8f6ff8a4ed51018aa317f9172cf78be648771169540aca7846");
  EXPECT_EQ(ScoreKeyOf(ScoreInputs()).Hex(), "f946514edadb6506af05f522b1cea6b8a2abb7f16e5962f7f7cad9541a6fa09b");
  EXPECT_EQ(StreamKeyOf(99, 3, {5, 6, 7}), 0xb12558075bc0dd4bULL);
  const Generation generation = {.key = KeyOf(KeyInputs()),
                                 .tokens = {8, 9},
                                 .text = "h\xC3\xA9",
                                 .finish = FinishReason::kStop,
                                 .prompt_tokens = 3};
  EXPECT_EQ(generation.Checksum().Hex(), "c9bb6c0e5c451a4320dfc436e8bdaa61775efa8993974925c65805183ae4acf8");
  EXPECT_EQ(Item().Hash().Hex(), "00e0a373af51ce5b13e3d5800ab1ec80255c45e9446b2b70656090187e2eb57e");
}

// On CUDA an id names the architecture: its kernels are others.
TEST(EvalTypes, TorchNumericsNameTheArchitecture) {
  EXPECT_EQ(TorchBackendName(0), "torch");
  EXPECT_EQ(TorchBackendName(90), "torch-cuda-sm_90");
  EXPECT_EQ(NumericsSpec{.backend = TorchBackendName(120)}.Id(),
            "torch-cuda-sm_120/1-torch2.11.0/weights=stored/act=f32/kv=f32");
  const struct {
    const char* backend;
    bool names_one, torch;
  } cases[] = {{"torch-cuda-sm_90", true, true},
               {"torch-cuda-sm_120", true, true},
               {"torch-cuda", false, true},
               {"torch", false, true},
               {"torch-cuda-sm_", false, false},
               {"torch-cuda-sm_0", false, false},
               {"torch-cuda-sm_090", false, false},
               {"torch-cuda-sm_-9", false, false},
               {"torch-cuda-sm_90a", false, false},
               {"torch-cuda-90", false, false},
               {"torch-cuda-sm_99999999999", false, false},
               {"cuda-exact", false, false},
               {"", false, false}};
  for (const auto& c : cases) {
    EXPECT_EQ(IsTorchCudaName(c.backend), c.names_one) << c.backend;
    EXPECT_EQ(NumericsSpec{.backend = c.backend}.torch(), c.torch) << c.backend;
  }
}

TEST(EvalTypes, CudaNumericsNameTheArchitecture) {
  EXPECT_EQ(CudaNumerics(CudaExactName(90)).Id(), "cuda-exact-sm_90/2/weights=bf16/act=bf16/kv=bf16");
  for (const char* backend : {"cuda-exact-sm_90", "cuda-exact-sm_120"}) EXPECT_TRUE(IsCudaExactName(backend));
  for (const char* backend : {"cuda-exact", "cuda-exact-sm_", "cuda-exact-sm_090", "cuda-exact-sm_90a",
                              "cuda-exact-sm_0", "torch-cuda-sm_90", "cuda-fast", ""}) {
    EXPECT_FALSE(IsCudaExactName(backend)) << backend;
  }
  // The libraries that come with LibTorch decide bits, too; the emulator has none.
  EXPECT_EQ(CudaNumerics(CudaFastName(90)).Id(), "cuda-fast-sm_90/1-torch2.11.0/weights=bf16/act=bf16/kv=bf16");
  EXPECT_EQ(EmulatedFastNumerics().Id(), "cuda-fast-emulated/1/weights=bf16/act=bf16/kv=bf16");
  EXPECT_TRUE(IsCudaFastName("cuda-fast-sm_90"));
  for (const char* backend : {"cuda-fast", "cuda-fast-emulated", "cuda-fast-sm_090", "cuda-exact-sm_90", ""}) {
    EXPECT_FALSE(IsCudaFastName(backend)) << backend;
  }
  const struct {
    const char* backend;
    bool cuda, on_device, exact;
  } cases[] = {{"cuda-exact-sm_90", true, true, true},    {"cuda-exact", true, true, true},
               {"cuda-emulated", false, true, true},      {"cuda-fast-sm_90", false, true, false},
               {"cuda-fast", false, true, false},         {"cuda-fast-emulated", false, true, false},
               {"torch-cuda-sm_90", false, false, false}, {"cpu-exact", false, false, true}};
  for (const auto& c : cases) {
    const NumericsSpec spec{.backend = c.backend};
    EXPECT_EQ(spec.cuda_exact(), c.cuda) << c.backend;
    EXPECT_EQ(spec.on_device(), c.on_device) << c.backend;
    EXPECT_EQ(spec.exact(), c.exact) << c.backend;
  }
}

TEST(EvalTypes, CudaDevicesHaveNumbers) {
  EXPECT_EQ(CudaIndexOf("cuda"), 0);
  EXPECT_EQ(CudaIndexOf("cuda:0"), 0);
  EXPECT_EQ(CudaIndexOf("cuda:127"), 127);
  for (const char* name : {"", "cpu", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:128", "cuda:1000", "cuda:99999999999",
                           "cuda0", "cuda:1 ", "cuda: 1"}) {
    EXPECT_EQ(CudaIndexOf(name), std::nullopt) << name;
  }
}

// Where a choice begins decides what is scored, also when all of its tokens together are the same.
TEST(EvalTypes, ScoreKeyCoversEachInput) {
  const std::vector<std::function<void(ScoreKeyInputs&)>> changes = {
      [](ScoreKeyInputs& in) { in.weights = Filled(9); },
      [](ScoreKeyInputs& in) { in.tokenizer = Filled(9); },
      [](ScoreKeyInputs& in) { in.numerics_id += "x"; },
      [](ScoreKeyInputs& in) {
        in.choices[1] = {.context = {5, 6, 8}, .tokens = {9}};
      },
      [](ScoreKeyInputs& in) { in.choices[0].tokens.push_back(1); },
      [](ScoreKeyInputs& in) { in.choices[0].context.push_back(1); },
      [](ScoreKeyInputs& in) { std::swap(in.choices[0], in.choices[1]); },
      [](ScoreKeyInputs& in) { in.choices.pop_back(); },
  };
  std::set<GenKey> keys = {ScoreKeyOf(ScoreInputs()), KeyOf(KeyInputs())};
  ASSERT_EQ(keys.size(), 2u);
  for (const auto& change : changes) {
    ScoreKeyInputs in = ScoreInputs();
    change(in);
    EXPECT_TRUE(keys.insert(ScoreKeyOf(in)).second) << "change " << keys.size() << " left the key as another";
  }
}

// Every field that decides a generation changes its key; the number of samples asked for does not.
TEST(EvalTypes, GenKeyCoversEachInput) {
  const std::vector<std::function<void(GenKeyInputs&)>> changes = {
      [](GenKeyInputs& in) { in.weights = Filled(9); },
      [](GenKeyInputs& in) { in.tokenizer = Filled(9); },
      [](GenKeyInputs& in) { in.numerics_id += "x"; },
      [](GenKeyInputs& in) { in.prompt.push_back(1); },
      [](GenKeyInputs& in) { in.sampling.temperature = 0.7; },
      [](GenKeyInputs& in) { in.sampling.top_p = 0.9; },
      [](GenKeyInputs& in) { in.sampling.top_k = 19; },
      [](GenKeyInputs& in) { in.sampling.seed = 1; },
      [](GenKeyInputs& in) { in.sampling.max_new_tokens = 1; },
      [](GenKeyInputs& in) { in.stops.clear(); },
      [](GenKeyInputs& in) { in.eos.push_back(3); },
      [](GenKeyInputs& in) { in.sample_index = 4; },
  };
  std::set<GenKey> keys = {KeyOf(KeyInputs())};
  for (const auto& change : changes) {
    GenKeyInputs in = KeyInputs();
    change(in);
    EXPECT_TRUE(keys.insert(KeyOf(in)).second) << "change " << keys.size() << " left the key as another";
  }
  GenKeyInputs more_samples = KeyInputs();
  more_samples.sampling.samples = 50;
  EXPECT_EQ(KeyOf(more_samples), KeyOf(KeyInputs()));
}

TEST(EvalTypes, ItemHashCoversEachField) {
  const std::vector<std::function<void(ItemResult&)>> changes = {
      [](ItemResult& r) { r.index = 5; },
      [](ItemResult& r) { r.item_id = "x"; },
      [](ItemResult& r) { r.unscored = Unscored::kPromptTooLong; },
      [](ItemResult& r) { r.samples.clear(); },
      [](ItemResult& r) { r.samples[0].generation = GenKey{}; },
      [](ItemResult& r) { r.samples[0].grades[0].metric = "x"; },
      [](ItemResult& r) { r.samples[0].grades[0].extracted = "x"; },
      [](ItemResult& r) { r.samples[0].grades[0].valid = false; },
      [](ItemResult& r) { r.samples[0].grades[0].unscored = Unscored::kGraderError; },
      [](ItemResult& r) {
        r.samples[0].grades[0].score = {0, 1};
      },
      [](ItemResult& r) { r.samples[0].grades[0].reason = "x"; },
      [](ItemResult& r) { r.values.clear(); },
      [](ItemResult& r) { r.values[0].metric = "x"; },
      [](ItemResult& r) { r.values[0].unscored = Unscored::kUndefined; },
      [](ItemResult& r) {
        r.values[0].score = {1, 3};
      },
      [](ItemResult& r) { r.values[0].winner = "x"; },
      [](ItemResult& r) {
        r.values[0].tie = {1, 2};
      },
      [](ItemResult& r) { r.values[0].invalid = 2; },
  };
  std::set<Digest> hashes = {Item().Hash()};
  for (const auto& change : changes) {
    ItemResult item = Item();
    change(item);
    EXPECT_TRUE(hashes.insert(item.Hash()).second) << "change " << hashes.size();
  }
}

TEST(EvalTypes, SweepIdIgnoresOptionOrderAndSeesTag) {
  SweepSpec spec = Sweep();
  spec.entries[0].benchmark.options = {{"fewshot", "8"}, {"prompt", "chat"}};
  EXPECT_EQ(IdOf(spec), IdOf(Sweep()));
  spec.run_tag = "again";
  EXPECT_NE(IdOf(spec), IdOf(Sweep()));
  SweepSpec no_limit = Sweep(), zero_limit = Sweep();
  no_limit.entries[0].limit.reset();
  zero_limit.entries[0].limit = 0;
  EXPECT_NE(IdOf(no_limit), IdOf(zero_limit));
}

TEST(EvalTypes, Names) {
  EXPECT_STREQ(NameOf(FinishReason::kEos), "eos");
  EXPECT_STREQ(NameOf(FinishReason::kStop), "stop");
  EXPECT_STREQ(NameOf(FinishReason::kLength), "length");
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(kLastUnscored); i++) names.insert(NameOf(static_cast<Unscored>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastUnscored) + 1);
}

}  // namespace
}  // namespace iha
