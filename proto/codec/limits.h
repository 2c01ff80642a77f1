// limits.h: how large anything on the wire may be. The codec refuses more; both ends give kMaxMessageBytes to gRPC.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iha::codec {

inline constexpr int kMaxMessageBytes = 64 << 20;
// What a sender puts into one message of generations or items (SplitBySize); one element may exceed it, up to its own
// limits below, which keep it well under kMaxMessageBytes.
inline constexpr size_t kChunkBytes = size_t{16} << 20;

inline constexpr size_t kDigestBytes = 32;
inline constexpr size_t kMaxIdBytes = 128;        // worker and request ids
inline constexpr size_t kMaxNameBytes = 1024;     // models, benchmarks, metrics, options, versions
inline constexpr size_t kMaxLineBytes = 4096;     // one line for people
inline constexpr size_t kMaxOptionBytes = 65536;  // a benchmark option's value; the planner refuses more
inline constexpr size_t kMaxTextBytes = 8 << 20;  // one generation
inline constexpr size_t kMaxTableBytes = 32 << 20;
inline constexpr int kMaxTokens = 1 << 20;   // one generation or prompt
inline constexpr int kMaxSamples = 100'000;  // samples of one item
inline constexpr int kMaxListed = 10'000;    // models, entries, options, metrics, leases, keys of one message
inline constexpr int64_t kMaxItems = 1'000'000'000;
inline constexpr int64_t kMaxCount = int64_t{1} << 53;  // token budgets, progress counts

}  // namespace iha::codec
