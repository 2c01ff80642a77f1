// runner.h: runs a backend by hand: token ids in, logits out, in chunks of any size, one sequence or several at once.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/backend.h"
#include "model/oracle.h"
#include "model/sequence_run.h"

namespace iha::model::testing {

// The expected values of an oracle's folder; empty and a test failure when they can't be read.
inline Oracle OracleOf(const std::string& folder) {
  auto oracle = ReadOracle(folder + "/expected.safetensors");
  EXPECT_TRUE(oracle.ok()) << oracle.status();
  return oracle.ok() ? *std::move(oracle) : Oracle();
}

// Of results that exist: -0 is not +0, a NaN equals the same NaN.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// RunSequences over one reserved cache, logits collected.
class Runner {
 public:
  // blocks: for each layer group.
  Runner(Backend& backend, int32_t blocks) : backend_(backend) {
    const absl::Status status = backend.ReserveCache(blocks * static_cast<int32_t>(backend.info().kv_windows.size()));
    EXPECT_TRUE(status.ok()) << status;
  }

  // Logits of every position of every sequence, [tokens][vocab]. chunk 0 = whole.
  std::vector<std::vector<float>> Run(const std::vector<std::vector<int32_t>>& sequences, size_t chunk) {
    std::vector<std::vector<float>> logits(sequences.size());
    const LogitSink keep = [&logits](size_t sequence, std::span<const float> rows) {
      logits[sequence].insert(logits[sequence].end(), rows.begin(), rows.end());
      return absl::OkStatus();
    };
    const absl::Status status = RunSequences(backend_, sequences, chunk, keep, nullptr);
    EXPECT_TRUE(status.ok()) << status;
    return logits;
  }

 private:
  Backend& backend_;
};

}  // namespace iha::model::testing
