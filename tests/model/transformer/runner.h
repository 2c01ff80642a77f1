// runner.h: runs a backend by hand: token ids in, logits out, in chunks of any size, one sequence or several at once.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "model/backend.h"

namespace iha::model::testing {

// Gives each sequence its own consecutive blocks and runs chunk after chunk; all sequences share each step.
class Runner {
 public:
  Runner(Backend& backend, int32_t blocks) : backend_(backend) {
    const absl::Status status = backend.ReserveCache(blocks);
    EXPECT_TRUE(status.ok()) << status;
  }

  // Logits of every position of every sequence, [tokens][vocab]. chunk 0 = whole.
  std::vector<std::vector<float>> Run(const std::vector<std::vector<int32_t>>& sequences, size_t chunk,
                                      Trace* trace = nullptr) {
    const size_t vocab = static_cast<size_t>(backend_.info().vocab_size);
    std::vector<std::vector<float>> logits(sequences.size());
    std::vector<std::vector<int32_t>> tables(sequences.size());
    int32_t next_block = 0;
    for (size_t s = 0; s < sequences.size(); s++) {
      tables[s].resize(sequences[s].size() / kKvBlockTokens + 1);
      std::iota(tables[s].begin(), tables[s].end(), next_block);
      next_block += static_cast<int32_t>(tables[s].size());
    }
    for (size_t start = 0;; start += chunk) {
      std::vector<Segment> segments;
      std::vector<size_t> owner;
      for (size_t s = 0; s < sequences.size(); s++) {
        if (start >= sequences[s].size()) continue;
        const size_t left = sequences[s].size() - start;
        const size_t count = chunk == 0 ? left : std::min(chunk, left);
        rows_.resize(std::max(rows_.size(), count));
        owner.push_back(s);
        segments.push_back({.tokens = std::span(sequences[s]).subspan(start, count),
                            .start = static_cast<int64_t>(start),
                            .blocks = tables[s],
                            .logit_rows = {}});
      }
      if (segments.empty()) break;
      std::iota(rows_.begin(), rows_.end(), 0);
      size_t total = 0;
      for (Segment& segment : segments) {
        segment.logit_rows = std::span(rows_).first(segment.tokens.size());
        total += segment.tokens.size();
      }
      std::vector<float> out(total * vocab);
      const absl::Status status = backend_.Forward(segments, out, trace);
      EXPECT_TRUE(status.ok()) << status;
      auto at = out.begin();
      for (size_t i = 0; i < segments.size(); i++) {
        const auto end = at + static_cast<std::ptrdiff_t>(segments[i].tokens.size() * vocab);
        logits[owner[i]].insert(logits[owner[i]].end(), at, end);
        at = end;
      }
      if (chunk == 0) break;
    }
    return logits;
  }

 private:
  Backend& backend_;
  std::vector<int32_t> rows_;
};

}  // namespace iha::model::testing
