#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/logits/sample_gpu.h"
#include "kernels/support/exact_math.h"

namespace iha::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Of a row's weights by id, 0 where an id does not stay: blocks of 256 ids, in each 8 lanes folded to one.
std::vector<double> BlockSums(const std::vector<float>& weights) {
  std::vector<double> sums;
  for (size_t begin = 0; begin < weights.size(); begin += kSampleGpuBlock) {
    double lanes[8] = {};
    for (size_t i = begin; i < std::min<size_t>(begin + kSampleGpuBlock, weights.size()); ++i) {
      lanes[i % 8] += static_cast<double>(weights[i]);
    }
    sums.push_back(((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7])));
  }
  return sums;
}
double Total(const std::vector<double>& sums) { return std::accumulate(sums.begin(), sums.end(), 0.0); }

std::vector<float> Masked(const SampleGpuArgs& args, uint32_t row) {
  const float* const x = args.logits + size_t{row} * args.ld;
  std::vector<float> masked(x, x + args.n);
  if (args.id_begin == nullptr) return masked;
  const uint32_t *const begin = args.id_begin + size_t{2} * row, allowed = begin[1] - begin[0];
  if (allowed > 0) std::fill(masked.begin(), masked.end(), kNever);
  for (uint32_t i = begin[0]; i < begin[1]; ++i) masked[static_cast<size_t>(args.ids[i])] = x[args.ids[i]];
  for (uint32_t i = begin[1]; i < begin[2]; ++i) masked[static_cast<size_t>(args.ids[i])] = kNever;
  return masked;
}

// How many of the order top_p keeps: the shortest prefix whose running sum reaches its share.
size_t PrefixOf(const std::vector<uint32_t>& order, const std::vector<float>& weights, double target) {
  double sum = 0;
  size_t kept = 0;
  while (kept < order.size() && sum < target) sum += static_cast<double>(weights[order[kept++]]);
  return kept;
}

// The first id whose running sum exceeds the target; by rounding it may be none: then the last that has weight.
int32_t Draw(const std::vector<float>& weights, double uniform) {
  const std::vector<double> sums = BlockSums(weights);
  const double target = uniform * Total(sums);
  double before = 0, sum = 0;
  size_t chosen = 0;
  for (size_t block = 0; block < sums.size() && sum <= target; ++block) {
    if (sums[block] == 0) continue;
    chosen = block;
    before = sum;
    sum += sums[block];
  }
  size_t drawn = chosen * kSampleGpuBlock;
  const size_t end = std::min<size_t>(drawn + kSampleGpuBlock, weights.size());
  for (size_t id = drawn; id < end && before <= target; ++id) {
    if (weights[id] == 0) continue;
    drawn = id;
    before += static_cast<double>(weights[id]);
  }
  return static_cast<int32_t>(drawn);
}

}  // namespace

int32_t SampleRef(const SampleGpuArgs& args, uint32_t row) {
  const float* const logits = args.logits + size_t{row} * args.ld;
  if (std::any_of(logits, logits + args.n, [](float x) { return std::isnan(x); })) return kSampleNan;
  const std::vector<float> x = Masked(args, row);
  std::vector<uint32_t> order(args.n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return x[a] > x[b]; });
  const float max = x[order[0]], temperature = args.temperature[row];
  if (max == kNever) return kSampleNothing;
  if (std::isinf(max)) return kSampleInfinite;
  if (temperature == 0.0f) return static_cast<int32_t>(order[0]);
  if (args.top_k[row] > 0 && args.top_k[row] < args.n) order.resize(args.top_k[row]);
  std::vector<float> weights(args.n, 0.0f);
  for (const uint32_t id : order) weights[id] = ExpNeg((x[id] - max) / temperature);
  if (args.top_p[row] < 1) {
    const size_t kept = PrefixOf(order, weights, args.top_p[row] * Total(BlockSums(weights)));
    for (size_t i = kept; i < order.size(); ++i) weights[order[i]] = 0.0f;
  }
  return Draw(weights, args.uniform[row]);
}

}  // namespace iha::kernels
