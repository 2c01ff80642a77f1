#include "worker/engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "common/rng.h"
#include "kernels/logits/sample_gpu.h"

namespace iha::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Expected probabilities by the definition, in long double and with libm.
std::vector<long double> Softmax(const std::vector<float>& logits, double temperature) {
  const long double max = *std::max_element(logits.begin(), logits.end());
  std::vector<long double> p;
  for (const float x : logits) p.push_back(std::exp((x - max) / static_cast<long double>(temperature)));
  const long double total = std::accumulate(p.begin(), p.end(), 0.0L);
  for (long double& value : p) value /= total;
  return p;
}

std::vector<int32_t> ByLogit(const std::vector<float>& logits) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return order;
}

// Zeroes what top-k, then top-p take out, and renormalises.
std::vector<long double> Filter(const std::vector<float>& logits, std::vector<long double> p, int32_t top_k,
                                double top_p) {
  const std::vector<int32_t> order = ByLogit(logits);
  const size_t k = top_k > 0 ? std::min<size_t>(static_cast<size_t>(top_k), p.size()) : p.size();
  for (size_t i = k; i < order.size(); i++) p[static_cast<size_t>(order[i])] = 0;
  const long double total = std::accumulate(p.begin(), p.end(), 0.0L);
  long double sum = 0;
  for (const int32_t id : order) {
    if (sum >= top_p * total) p[static_cast<size_t>(id)] = 0;
    sum += p[static_cast<size_t>(id)];
  }
  const long double kept = std::accumulate(p.begin(), p.end(), 0.0L);
  for (long double& value : p) value /= kept;
  return p;
}

int32_t MustDraw(const std::vector<float>& logits, const DrawRules& rules, double uniform) {
  Sampler sampler;
  const auto drawn = sampler.Draw(logits, rules, uniform);
  EXPECT_TRUE(drawn.ok()) << drawn.status();
  return drawn.value_or(-1);
}

std::vector<float> RandomLogits(uint64_t key, size_t count, double scale) {
  PhiloxStream random(key);
  std::vector<float> logits;
  for (size_t i = 0; i < count; i++) logits.push_back(static_cast<float>(scale * (random.NextUniform() - 0.5)));
  return logits;
}

TEST(Sampler, GreedyIsTheLowestIdAmongTheLargest) {
  EXPECT_EQ(MustDraw({1, 3, 2, 3}, {}, 0.99), 1);
  EXPECT_EQ(MustDraw({-0.0f, 0.0f}, {}, 0.5), 0);
  EXPECT_EQ(MustDraw({-kInf, -5, -kInf}, {}, 0.5), 1);
  // Filters leave greedy as it is.
  EXPECT_EQ(MustDraw({1, 3, 2, 3}, {.top_k = 1, .top_p = 0.01}, 0.99), 1);
}

TEST(Sampler, MasksHoldForGreedyAndForDraws) {
  const std::vector<float> logits = {5, 4, 3, 2};
  const std::vector<int32_t> zero = {0}, one = {1}, two_three = {2, 3};
  EXPECT_EQ(MustDraw(logits, {.forbidden = zero}, 0), 1);
  EXPECT_EQ(MustDraw(logits, {.forbidden = zero, .also_forbidden = one}, 0), 2);
  EXPECT_EQ(MustDraw(logits, {.allowed = two_three}, 0), 2);
  std::set<int32_t> seen;
  for (uint64_t i = 0; i < 1000; i++) {
    seen.insert(MustDraw(logits, {.temperature = 2, .allowed = two_three}, UniformAt(1, i)));
  }
  EXPECT_EQ(seen, (std::set<int32_t>{2, 3}));
  Sampler sampler;
  EXPECT_EQ(sampler.Draw(logits, {.allowed = zero, .forbidden = zero}, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.Draw({}, {}, 0).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Sampler, BrokenLogitsAreErrors) {
  Sampler sampler;
  for (const double temperature : {0.0, 1.0}) {
    for (const std::vector<float>& logits :
         {std::vector<float>{1, kNaN}, std::vector<float>{kNaN, kNaN}, std::vector<float>{1, kInf}}) {
      EXPECT_EQ(sampler.Draw(logits, {.temperature = temperature}, 0.5).status().code(), absl::StatusCode::kDataLoss);
      EXPECT_FALSE(sampler.Score(logits, 0, 2).ok());
    }
    EXPECT_EQ(sampler.Draw(std::vector<float>{-kInf, -kInf}, {.temperature = temperature}, 0.5).status().code(),
              absl::StatusCode::kDataLoss)
        << "no rule took anything away";
  }
}

TEST(Sampler, NucleusIsTheShortestPrefixThatReachesP) {
  // Equal weights: 1/4 each, exactly. p = 0.5 is reached by two ids, the lowest ones of the tie.
  const std::vector<float> logits = {1, 1, 1, 1};
  const auto support = [&](const std::vector<float>& row, int32_t top_k, double top_p) {
    std::set<int32_t> seen;
    for (int i = 0; i < 4096; i++) {
      seen.insert(MustDraw(row, {.temperature = 1, .top_k = top_k, .top_p = top_p}, i / 4096.0));
    }
    return seen;
  };
  EXPECT_EQ(support(logits, 0, 0.5), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(support(logits, 0, 0.500001), (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(support(logits, 0, 0.25), (std::set<int32_t>{0}));
  EXPECT_EQ(support(logits, 0, 1e-9), (std::set<int32_t>{0}));
  EXPECT_EQ(support(logits, 3, 1), (std::set<int32_t>{0, 1, 2}));
  // top-p counts what top-k left: 2 of 2 are needed for 0.6, of 4 it would be 3.
  EXPECT_EQ(support(logits, 2, 0.6), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(support({0, 2, 1, 2}, 3, 1), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(support({0, 2, 1, 2}, 1, 1), (std::set<int32_t>{1}));
}

TEST(Sampler, WithoutFiltersTheDrawIsTheInverseOfTheDistributionInIdOrder) {
  const std::vector<float> logits = {0, 0, 0, 0};
  for (const auto& [uniform, id] : {std::pair(0.0, 0), {0.2499, 0}, {0.25, 1}, {0.5, 2}, {0.75, 3}, {0.99999, 3}}) {
    EXPECT_EQ(MustDraw(logits, {.temperature = 1}, uniform), id) << uniform;
  }
  // The last representable uniform still finds an id, and never one of weight zero.
  std::vector<float> tail(1000, -kInf);
  tail[3] = 1;
  tail[700] = 0;
  EXPECT_EQ(MustDraw(tail, {.temperature = 1}, 1 - 0x1p-53), 700);
  EXPECT_EQ(MustDraw(tail, {.temperature = 1}, 0), 3);
}

TEST(Sampler, ZeroProbabilityIsNeverDrawn) {
  std::vector<float> logits = RandomLogits(11, 700, 4);
  for (size_t id = 0; id < logits.size(); id += 3) logits[id] = id % 2 == 0 ? -kInf : -200.0f;
  Sampler sampler;
  for (uint64_t i = 0; i < 20000; i++) {
    const auto drawn = sampler.Draw(logits, {.temperature = 1, .top_p = i % 2 == 0 ? 1 : 0.999}, UniformAt(5, i));
    ASSERT_TRUE(drawn.ok());
    ASSERT_NE(*drawn % 3, 0);
  }
}

struct Setting {
  double temperature;
  int32_t top_k;
  double top_p;
};

TEST(Sampler, FrequenciesFollowTheExactSoftmax) {
  // 300 ids: more than one block of the sums. The chi-square statistic of n draws over c cells (cells with less than 8
  // expected draws are pooled) has mean c - 1 and deviation sqrt(2 (c - 1)); 5 deviations are exceeded with
  // probability below 1e-5 a setting for c > 8, and the seed is fixed: a failure is a bug.
  constexpr int kDraws = 100000;
  const std::vector<float> logits = RandomLogits(3, 300, 6);
  for (const Setting& s : {Setting{1, 0, 1}, Setting{0.6, 0, 1}, Setting{1.7, 0, 1}, Setting{1, 20, 1},
                           Setting{1, 0, 0.8}, Setting{0.8, 50, 0.9}, Setting{3, 0, 0.999}}) {
    SCOPED_TRACE(fmt::format("T {} top_k {} top_p {}", s.temperature, s.top_k, s.top_p));
    const auto expected = Filter(logits, Softmax(logits, s.temperature), s.top_k, s.top_p);
    std::vector<int> counts(logits.size());
    Sampler sampler;
    for (int i = 0; i < kDraws; i++) {
      const auto id =
          sampler.Draw(logits, {s.temperature, s.top_k, s.top_p, {}, {}, {}}, UniformAt(99, static_cast<uint64_t>(i)));
      ASSERT_TRUE(id.ok());
      counts[static_cast<size_t>(*id)]++;
    }
    double chi = 0, pooled_expected = 0, pooled_count = 0;
    int cells = 0;
    for (size_t id = 0; id < counts.size(); id++) {
      const double want = static_cast<double>(expected[id]) * kDraws;
      if (want == 0) {
        ASSERT_EQ(counts[id], 0) << id;
      } else if (want < 8) {
        pooled_expected += want;
        pooled_count += counts[id];
      } else {
        chi += (counts[id] - want) * (counts[id] - want) / want;
        cells++;
      }
    }
    if (pooled_expected > 0) {
      chi += (pooled_count - pooled_expected) * (pooled_count - pooled_expected) / pooled_expected;
      cells++;
    }
    ASSERT_GT(cells, 8);
    EXPECT_LT(chi, cells - 1 + 5 * std::sqrt(2.0 * (cells - 1)));
  }
}

int32_t ReferenceToken(const std::vector<float>& logits, const DrawRules& rules, double uniform) {
  const auto temperature = static_cast<float>(rules.temperature);
  const auto top_k = static_cast<uint32_t>(rules.top_k);
  const auto n = static_cast<uint32_t>(logits.size());
  std::vector<int32_t> ids(rules.allowed.begin(), rules.allowed.end());
  ids.insert(ids.end(), rules.forbidden.begin(), rules.forbidden.end());
  const uint32_t id_begin[] = {0, static_cast<uint32_t>(rules.allowed.size()), static_cast<uint32_t>(ids.size())};
  return kernels::SampleRef({.logits = logits.data(),
                             .temperature = &temperature,
                             .top_k = &top_k,
                             .top_p = &rules.top_p,
                             .uniform = &uniform,
                             .ids = ids.data(),
                             .id_begin = id_begin,
                             .rows = 1,
                             .n = n,
                             .ld = n},
                            0);
}

// A device draws by the same reference (sample_gpu_test.cc), so that both give one token for equal logits (ENG-8): of
// many uniforms, and closer and closer to one where the token changes, which a sum of other bits would move.
TEST(Sampler, TokensAreThoseOfTheReference) {
  for (uint64_t i = 0; i < 300; i++) {
    std::vector<float> logits = RandomLogits(i, std::vector<size_t>{1, 2, 255, 256, 257, 1000}[i % 6], 12);
    for (float& x : logits) x = i % 4 == 3 ? std::round(x) : x;  // many are equal
    const std::vector<int32_t> some = {0, 0, static_cast<int32_t>(logits.size() / 2)};
    const std::vector<int32_t> none;
    const DrawRules rules{.temperature = std::vector<double>{0.25, 1, 30, 0, 0.7}[i % 5],
                          .top_k = std::vector<int32_t>{0, 0, 1, 40, 2000, 7, 0}[i % 7],
                          .top_p = std::vector<double>{1, 0.9, 0.25, 1e-6, 0.999999}[i / 3 % 5],
                          .allowed = i % 11 == 10 ? some : none,
                          .forbidden = i % 13 >= 11 && logits.size() > 2 ? std::span(some).last(1) : none};
    const auto same = [&](double uniform) {
      const int32_t token = MustDraw(logits, rules, uniform);
      EXPECT_EQ(token, ReferenceToken(logits, rules, uniform)) << "case " << i << ", uniform " << uniform;
      return token;
    };
    double low = 0, high = UniformAt(21, i);
    const int32_t first = same(low);
    same(high);
    same(1 - 0x1p-53);
    for (int step = 0; step < 60; step++) {
      const double middle = low + (high - low) / 2;
      (same(middle) == first ? low : high) = middle;
    }
  }
}

TEST(Sampler, BitsDoNotDependOnWhatTheSamplerDidBefore) {
  Sampler used;
  for (uint64_t i = 0; i < 200; i++) {
    const std::vector<float> logits = RandomLogits(i, 1 + 37 * (i % 40), 10);
    const DrawRules rules{.temperature = 0.9, .top_k = static_cast<int32_t>(i % 3 * 10), .top_p = i % 2 == 0 ? 1 : 0.7};
    const auto drawn = used.Draw(logits, rules, UniformAt(8, i));
    ASSERT_TRUE(drawn.ok());
    ASSERT_EQ(*drawn, MustDraw(logits, rules, UniformAt(8, i)));
  }
}

TEST(Sampler, ScoresAreLogProbabilitiesBestFirst) {
  const std::vector<float> logits = {1, 3, 2, 3};
  const auto p = Softmax(logits, 1);
  Sampler sampler;
  const auto score = sampler.Score(logits, 2, 3);
  ASSERT_TRUE(score.ok());
  EXPECT_FALSE(score->greedy);
  EXPECT_TRUE(sampler.Score(logits, 1, 0)->greedy);
  ASSERT_EQ(score->top.size(), 3u);
  EXPECT_EQ(score->top[0].id, 1);
  EXPECT_EQ(score->top[1].id, 3);
  EXPECT_EQ(score->top[2], score->token);
  // exp terms are fp32, within 1.1 ulp: their sum's relative error, and so the logarithm's absolute one, is below
  // 2^-22.
  for (const TokenLogprob& t : score->top) {
    EXPECT_NEAR(t.logprob, static_cast<double>(std::log(p[static_cast<size_t>(t.id)])), 0x1p-22);
  }
  EXPECT_EQ(sampler.Score(logits, 0, 99)->top.size(), 4u);
}

}  // namespace
}  // namespace iha::engine
