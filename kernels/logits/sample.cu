#include "kernels/logits/best.cuh"
#include "kernels/logits/sample_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"
#include "kernels/support/exact_math.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kThreads = kSampleGpuThreads, kPiece = kSampleGpuPiece, kBlock = kSampleGpuBlock;
constexpr uint64_t kLastKey = ~uint64_t{0};

// Bytes of shared memory where its parts begin.
constexpr uint32_t kKeysAt = 0;
constexpr uint32_t kWeightsAt = kKeysAt + kPiece * 8;
constexpr uint32_t kCountsAt = kWeightsAt + kPiece * 4;
constexpr uint32_t kFoundAt = kCountsAt + 256 * 4;  // a 64-bit value, two of 32 bits, a double
constexpr uint32_t kBestAt = kFoundAt + 32;
constexpr uint32_t kSumsAt = kBestAt + kThreads / 32 * 8;

// exp(x), x <= 0: NUM-4, step by step; nothing here that a compiler may fuse.
IHA_DEVICE float ExpNegDevice(float x) {
  using namespace exp_constants;
  if (!(x >= kMin)) return x != x ? x : 0.0f;
  const float n = rintf(x * kLog2E);
  float r = fmaf(n, -kLn2Hi, x);
  r = fmaf(n, -kLn2Lo, r);
  float p = fmaf(kC7, r, kC6);
  p = fmaf(p, r, kC5);
  p = fmaf(p, r, kC4);
  p = fmaf(p, r, kC3);
  p = fmaf(p, r, kC2);
  p = 1.0f + fmaf(r * r, p, r);
  return BitsAs<float>(BitsAs<uint32_t>(p) + (static_cast<uint32_t>(static_cast<int32_t>(n)) << 23));
}

struct Row {
  ptx::Global<const float> x;
  uint32_t n;
  float max;
  float temperature;
};

IHA_DEVICE float Weight(const Row& row, float x) {
  float e = x - row.max;
  if (row.temperature != 1.0f) e = e / row.temperature;
  return ExpNegDevice(e);
}

// Place in the order: a smaller key comes earlier.
IHA_DEVICE uint64_t KeyOf(float x, uint32_t id) {
  const uint32_t bits = x == 0.0f ? 0u : BitsAs<uint32_t>(x);
  const uint32_t rising = bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u);
  return static_cast<uint64_t>(~rising) << 32 | id;
}
IHA_DEVICE float ValueOf(uint64_t key) {
  const uint32_t rising = ~static_cast<uint32_t>(key >> 32);
  return BitsAs<float>(rising ^ (rising >> 31 != 0 ? 0x80000000u : 0xFFFFFFFFu));
}

// The bucket that the rank-th of all counted keys lies in, how many lie before that bucket and in it; by warp 0, into
// kFoundAt. Comes after a barrier and ends with one.
IHA_DEVICE void FindBucket(uint32_t rank, uint32_t& bucket, uint32_t& before, uint32_t& in_bucket) {
  const auto counts = ptx::DynamicShared<uint32_t>(kCountsAt);
  const auto found = ptx::DynamicShared<uint32_t>(kFoundAt);
  if (ptx::WarpIndex() == 0) {
    uint32_t mine = 0;
    for (uint32_t i = 0; i < 8; ++i) mine += ptx::Load(counts + (ptx::Lane() * 8 + i));
    uint32_t end = mine;
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t lower = ptx::ShflUp(ptx::kAllLanes, end, step);
      if (ptx::Lane() >= step) end += lower;
    }
    uint32_t at = end - mine;
    if (at < rank && rank <= end) {
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t count = ptx::Load(counts + (ptx::Lane() * 8 + i));
        if (at < rank && rank <= at + count) {
          ptx::Store(found, ptx::Lane() * 8 + i);
          ptx::Store(found + 1, at);
          ptx::Store(found + 2, count);
        }
        at += count;
      }
    }
  }
  ptx::SyncThreads();
  bucket = ptx::Load(found);
  before = ptx::Load(found + 1);
  in_bucket = ptx::Load(found + 2);
}

// A key with exactly `rank` of the row's keys in from .. key, 0 < rank <= their number. The same in all threads.
IHA_DEVICE uint64_t KeyOfRank(const Row& row, uint64_t from, uint32_t rank) {
  const auto counts = ptx::DynamicShared<uint32_t>(kCountsAt);
  uint64_t prefix = 0;
  for (int shift = 56;; shift -= 8) {
    for (uint32_t i = ptx::ThreadX(); i < 256; i += kThreads) ptx::Store(counts + i, 0u);
    ptx::SyncThreads();
    const uint64_t known = shift == 56 ? 0 : kLastKey << (shift + 8);
    for (uint32_t i = ptx::ThreadX(); i < row.n; i += kThreads) {
      const uint64_t key = KeyOf(ptx::Load(row.x + i), i);
      if (key >= from && (key & known) == prefix) {
        ptx::AtomicAdd(counts + (static_cast<uint32_t>(key >> shift) & 255u), 1u);
      }
    }
    ptx::SyncThreads();
    uint32_t bucket, before, count;
    FindBucket(rank, bucket, before, count);
    prefix |= static_cast<uint64_t>(bucket) << shift;
    rank -= before;
    if (rank == count || shift == 0) return prefix | (shift == 0 ? 0 : kLastKey >> (64 - shift));
  }
}

// Sorts the keys of shared memory, padded with the last key to a power of two.
IHA_DEVICE void SortPiece(uint32_t count) {
  const auto keys = ptx::DynamicShared<uint64_t>(kKeysAt);
  uint32_t size = 2;
  while (size < count) size *= 2;
  for (uint32_t i = count + ptx::ThreadX(); i < size; i += kThreads) ptx::Store(keys + i, kLastKey);
  ptx::SyncThreads();
  for (uint32_t run = 2; run <= size; run *= 2) {
    for (uint32_t step = run / 2; step > 0; step /= 2) {
      for (uint32_t i = ptx::ThreadX(); i < size / 2; i += kThreads) {
        const uint32_t low = i / step * step * 2 + i % step, high = low + step;
        const uint64_t a = ptx::Load(keys + low), b = ptx::Load(keys + high);
        if ((a > b) == ((low & run) == 0)) {
          ptx::Store(keys + low, b);
          ptx::Store(keys + high, a);
        }
      }
      ptx::SyncThreads();
    }
  }
}

// Sums of the blocks' weights of the keys up to `last`, into shared memory; the thread 0 gets their total.
IHA_DEVICE double SumBlocks(const Row& row, uint64_t last) {
  const auto sums = ptx::DynamicShared<double>(kSumsAt);
  const uint32_t blocks = (row.n + kBlock - 1) / kBlock, lane = ptx::ThreadX() % 8;
  for (uint32_t first = 0; first < blocks; first += kThreads / 8) {
    const uint32_t block = first + ptx::ThreadX() / 8;
    double sum = 0;
    for (uint32_t i = block * kBlock + lane; i < (block + 1) * kBlock && i < row.n; i += 8) {
      const float x = ptx::Load(row.x + i);
      if (KeyOf(x, i) <= last) sum += static_cast<double>(Weight(row, x));
    }
    for (uint32_t half = 4; half > 0; half /= 2) sum += ptx::ShflXor(ptx::kAllLanes, sum, half, 8);
    if (block < blocks && lane == 0) ptx::Store(sums + block, sum);
  }
  ptx::SyncThreads();
  double total = 0;
  if (ptx::ThreadX() == 0) {
    for (uint32_t block = 0; block < blocks; ++block) total += ptx::Load(sums + block);
  }
  return total;
}

// The last key that top_p keeps of the `count` keys up to `last`.
IHA_DEVICE uint64_t KeyOfTopP(const Row& row, uint64_t last, uint32_t count, double top_p) {
  const double target = top_p * SumBlocks(row, last);  // of thread 0, as is `sum`
  const auto keys = ptx::DynamicShared<uint64_t>(kKeysAt);
  const auto weights = ptx::DynamicShared<float>(kWeightsAt);
  const auto counter = ptx::DynamicShared<uint32_t>(kFoundAt + 16);
  const auto answer = ptx::DynamicShared<uint64_t>(kFoundAt);
  double sum = 0;
  for (uint64_t from = 0;;) {
    const uint32_t take = count < kPiece ? count : kPiece;
    const uint64_t to = take == count ? last : KeyOfRank(row, from, take);
    if (ptx::ThreadX() == 0) ptx::Store(counter, 0u);
    ptx::SyncThreads();
    for (uint32_t i = ptx::ThreadX(); i < row.n; i += kThreads) {
      const uint64_t key = KeyOf(ptx::Load(row.x + i), i);
      if (key >= from && key <= to) ptx::Store(keys + ptx::AtomicAdd(counter, 1u), key);
    }
    SortPiece(take);
    for (uint32_t i = ptx::ThreadX(); i < take; i += kThreads) {
      ptx::Store(weights + i, Weight(row, ValueOf(ptx::Load(keys + i))));
    }
    ptx::SyncThreads();
    if (ptx::ThreadX() == 0) {
      // Past a weight of 0 nothing adds any more.
      uint32_t taken = 0;
      float weight = 1.0f;
      while (taken < take && sum < target && weight > 0.0f) {
        weight = ptx::Load(weights + taken++);
        sum += static_cast<double>(weight);
      }
      const bool done = sum >= target || weight == 0.0f;
      ptx::Store(answer, done ? ptx::Load(keys + (taken == 0 ? 0 : taken - 1)) : kLastKey);
    }
    ptx::SyncThreads();
    const uint64_t end = ptx::Load(answer);
    if (end != kLastKey) return end;
    if (take == count) return last;
    count -= take;
    from = to + 1;
  }
}

// Rule 5 over the keys up to `last`.
IHA_DEVICE void Draw(const Row& row, uint64_t last, double uniform, ptx::Global<int32_t> token) {
  const double total = SumBlocks(row, last);
  const auto sums = ptx::DynamicShared<double>(kSumsAt);
  const auto chosen_block = ptx::DynamicShared<uint32_t>(kFoundAt);
  const auto weights = ptx::DynamicShared<float>(kWeightsAt);
  const double target = uniform * total;
  double before = 0;
  if (ptx::ThreadX() == 0) {
    // The first block whose running sum exceeds the target; by rounding it may be none: then the last that has weight.
    double sum = 0;
    uint32_t chosen = 0;
    for (uint32_t block = 0; block < (row.n + kBlock - 1) / kBlock && sum <= target; ++block) {
      const double more = ptx::Load(sums + block);
      if (more == 0) continue;
      chosen = block;
      before = sum;
      sum += more;
    }
    ptx::Store(chosen_block, chosen);
  }
  ptx::SyncThreads();
  const uint32_t begin = ptx::Load(chosen_block) * kBlock, ids = row.n - begin < kBlock ? row.n - begin : kBlock;
  for (uint32_t i = ptx::ThreadX(); i < ids; i += kThreads) {
    const float x = ptx::Load(row.x + (begin + i));
    ptx::Store(weights + i, KeyOf(x, begin + i) <= last ? Weight(row, x) : 0.0f);
  }
  ptx::SyncThreads();
  if (ptx::ThreadX() != 0) return;
  uint32_t drawn = begin;
  for (uint32_t i = 0; i < ids && before <= target; ++i) {
    const float weight = ptx::Load(weights + i);
    if (weight == 0.0f) continue;
    drawn = begin + i;
    before += static_cast<double>(weight);
  }
  ptx::Store(token, static_cast<int32_t>(drawn));
}

// The row without the ids that may not be drawn, into `masked`; whether this thread met a NaN of the whole row.
IHA_DEVICE bool Mask(const SampleGpuArgs& p, ptx::Global<const float> x, ptx::Global<float> masked, uint32_t begin,
                     uint32_t middle, uint32_t end) {
  const ptx::Global<const int32_t> ids(p.ids);
  bool nan = false;
  for (uint32_t i = ptx::ThreadX(); i < p.n; i += kThreads) {
    const float value = ptx::Load(x + i);
    nan = nan || value != value;
    ptx::Store(masked + i, begin == middle ? value : -INFINITY);
  }
  ptx::SyncThreads();
  for (uint32_t i = begin + ptx::ThreadX(); i < middle; i += kThreads) {
    const int32_t id = ptx::Load(ids + i);
    ptx::Store(masked + id, ptx::Load(x + id));
  }
  ptx::SyncThreads();
  for (uint32_t i = middle + ptx::ThreadX(); i < end; i += kThreads) {
    ptx::Store(masked + ptx::Load(ids + i), -INFINITY);
  }
  ptx::SyncThreads();
  return nan;
}

// A block a row.
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) SampleRows(SampleGpuArgs p) {
  const uint32_t r = ptx::BlockX();
  const ptx::Global<const float> logits(p.logits);
  Row row{logits + size_t{r} * p.ld, p.n, 0.0f, ptx::Load(ptx::Global<const float>(p.temperature) + r)};
  Best best;
  bool nan = false;
  if (p.id_begin != nullptr) {
    const ptx::Global<const uint32_t> id_begin(p.id_begin);
    const uint32_t begin = ptx::Load(id_begin + 2 * r), middle = ptx::Load(id_begin + (2 * r + 1)),
                   end = ptx::Load(id_begin + (2 * r + 2));
    if (begin != end) {
      nan = Mask(p, row.x, ptx::Global<float>(p.masked) + size_t{r} * p.n, begin, middle, end);
      row.x = ptx::Global<const float>(p.masked) + size_t{r} * p.n;
    }
  }
  for (uint32_t i = ptx::ThreadX(); i < p.n; i += kThreads) {
    const float value = ptx::Load(row.x + i);
    Take(best, value, static_cast<int32_t>(i), value != value);
  }
  best.nan = best.nan || nan;
  const Best all = BestOfBlock<kThreads / 32>(best, kBestAt);
  row.max = all.value;
  const ptx::Global<int32_t> token = ptx::Global<int32_t>(p.tokens) + r;
  if (all.nan || all.value == -INFINITY || all.value == INFINITY || row.temperature == 0.0f) {
    if (ptx::ThreadX() != 0) return;
    ptx::Store(token, all.nan                  ? kSampleNan
                      : all.value == -INFINITY ? kSampleNothing
                      : all.value == INFINITY  ? kSampleInfinite
                                               : all.index);
    return;
  }
  const uint32_t top_k = ptx::Load(ptx::Global<const uint32_t>(p.top_k) + r);
  const double top_p = ptx::Load(ptx::Global<const double>(p.top_p) + r);
  const bool few = top_k > 0 && top_k < p.n;
  uint64_t last = few ? KeyOfRank(row, 0, top_k) : kLastKey;
  if (top_p < 1) last = KeyOfTopP(row, last, few ? top_k : p.n, top_p);
  Draw(row, last, ptx::Load(ptx::Global<const double>(p.uniform) + r), token);
}

}  // namespace

GpuStatus SampleGpu(const SampleGpuArgs& args, GpuStream stream) {
  if (args.n == 0 || args.n > kSampleGpuMaxN || args.ld < args.n) return 1;
  if (args.id_begin != nullptr && args.masked == nullptr) return 1;
  if (args.rows == 0) return 0;
  return LaunchKernel("sample", SampleRows, {args.rows, 1, 1, kThreads, SampleGpuSharedBytes(args.n)}, stream, args);
}

}  // namespace iha::kernels
