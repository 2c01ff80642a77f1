#include "worker/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/errors.h"
#include "model/logits.h"

namespace iha::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr size_t kSumBlock = 256;
constexpr size_t kLanes = 8;

// Largest logit first, ties by lowest id: a total order.
struct Better {
  std::span<const float> row;
  bool operator()(int32_t a, int32_t b) const {
    const float x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  }
};
struct Worse {
  std::span<const float> row;
  bool operator()(int32_t a, int32_t b) const { return Better{row}(b, a); }
};

// A sum in a fixed order that a compiler can keep in vector registers.
double SumBlock(std::span<const float> weights) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= weights.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; lane++) lanes[lane] += static_cast<double>(weights[i + lane]);
  }
  for (size_t lane = 0; i < weights.size(); i++, lane++) lanes[lane] += static_cast<double>(weights[i]);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace

std::span<const float> Sampler::Mask(std::span<const float> logits, const DrawRules& rules) {
  if (rules.allowed.empty() && rules.forbidden.empty() && rules.also_forbidden.empty()) return logits;
  if (rules.allowed.empty()) {
    masked_.assign(logits.begin(), logits.end());
  } else {
    masked_.assign(logits.size(), kNever);
    for (const int32_t id : rules.allowed) masked_[static_cast<size_t>(id)] = logits[static_cast<size_t>(id)];
  }
  for (const int32_t id : rules.forbidden) masked_[static_cast<size_t>(id)] = kNever;
  for (const int32_t id : rules.also_forbidden) masked_[static_cast<size_t>(id)] = kNever;
  return masked_;
}

absl::StatusOr<int32_t> Sampler::Draw(std::span<const float> logits, const DrawRules& rules, double uniform) {
  // The whole row, before the mask: a NaN anywhere means that the model is broken.
  int32_t best = model::Argmax(logits);
  if (best < 0) return DataLoss("the logits contain NaN; see iha-eval inspect");
  const std::span<const float> row = Mask(logits, rules);
  if (logits[static_cast<size_t>(best)] == kNever) return DataLoss("no logit is finite; see iha-eval inspect");
  if (row.data() != logits.data()) best = model::Argmax(row);
  const float max = row[static_cast<size_t>(best)];
  if (max == kNever) return InvalidArgument("no token may be drawn: allowed and forbidden ids leave nothing");
  if (std::isinf(max)) return DataLoss("the logit of token {} is infinite; see iha-eval inspect", best);
  if (rules.temperature == 0) return best;
  weights_.resize(row.size());
  model::SoftmaxWeights(row, static_cast<float>(rules.temperature), weights_.data());
  if (rules.top_k > 0 && static_cast<size_t>(rules.top_k) < row.size()) KeepTopK(row, rules.top_k);
  if (rules.top_p < 1) KeepTopP(row, rules.top_p);
  return PickByWeight(uniform);
}

void Sampler::KeepTopK(std::span<const float> row, int32_t top_k) {
  order_.resize(row.size());
  for (size_t id = 0; id < row.size(); id++) order_[id] = static_cast<int32_t>(id);
  std::nth_element(order_.begin(), order_.begin() + top_k, order_.end(), Better{row});
  for (size_t i = static_cast<size_t>(top_k); i < order_.size(); i++) weights_[static_cast<size_t>(order_[i])] = 0;
}

void Sampler::KeepTopP(std::span<const float> row, double top_p) {
  const double total = SumBlocks();
  const double target = top_p * total;
  // Ids lighter than `floor` together weigh less than half of what may be left out, so the prefix never reaches them;
  // leaving them out first keeps the heap small. Should rounding defeat that (top_p within an ulp of 1), all are taken.
  for (const double floor : {(1 - top_p) * total / (2 * static_cast<double>(row.size())), 0.0}) {
    order_.clear();
    for (size_t id = 0; id < row.size(); id++) {
      if (weights_[id] > 0 && static_cast<double>(weights_[id]) >= floor) order_.push_back(static_cast<int32_t>(id));
    }
    std::make_heap(order_.begin(), order_.end(), Worse{row});
    double sum = 0;
    auto end = order_.end();
    while (end != order_.begin() && sum < target) {
      std::pop_heap(order_.begin(), end, Worse{row});
      --end;
      sum += static_cast<double>(weights_[static_cast<size_t>(*end)]);
    }
    if (sum < target && floor > 0) continue;
    // The popped ones, end .., stay.
    for (float& weight : weights_) {
      if (static_cast<double>(weight) < floor) weight = 0;
    }
    for (auto id = order_.begin(); id != end; ++id) weights_[static_cast<size_t>(*id)] = 0;
    return;
  }
}

double Sampler::SumBlocks() {
  block_sums_.clear();
  double total = 0;
  for (size_t begin = 0; begin < weights_.size(); begin += kSumBlock) {
    block_sums_.push_back(SumBlock(std::span(weights_).subspan(begin, std::min(kSumBlock, weights_.size() - begin))));
    total += block_sums_.back();
  }
  return total;
}

int32_t Sampler::PickByWeight(double uniform) {
  const double target = uniform * SumBlocks();
  // The first block whose running sum exceeds the target; by rounding it may be none: then the last that has weight.
  double before = 0;
  double sum = 0;
  size_t chosen = 0;
  for (size_t block = 0; block < block_sums_.size() && sum <= target; block++) {
    if (block_sums_[block] == 0) continue;
    chosen = block;
    before = sum;
    sum += block_sums_[block];
  }
  const size_t begin = chosen * kSumBlock, end = std::min(begin + kSumBlock, weights_.size());
  size_t last = begin;
  for (size_t id = begin; id < end && before <= target; id++) {
    if (weights_[id] == 0) continue;
    last = id;
    before += static_cast<double>(weights_[id]);
  }
  return static_cast<int32_t>(last);
}

absl::StatusOr<TokenScore> Sampler::Score(std::span<const float> logits, int32_t id, int32_t top) {
  const double log_sum = model::LogSumExp(logits);
  if (std::isnan(log_sum)) return DataLoss("the logits contain NaN or no finite value");
  const auto logprob = [&](int32_t token) { return model::LogProb(logits, static_cast<size_t>(token), log_sum); };
  TokenScore score;
  score.token = {id, logprob(id)};
  score.greedy = model::Argmax(logits) == id;
  const size_t count = std::min(static_cast<size_t>(std::max(top, 0)), logits.size());
  if (count == 0) return score;
  order_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); i++) order_[i] = static_cast<int32_t>(i);
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order_.begin(), end, order_.end(), Better{logits});
  for (auto token = order_.begin(); token != end; ++token) score.top.push_back({*token, logprob(*token)});
  return score;
}

}  // namespace iha::engine
