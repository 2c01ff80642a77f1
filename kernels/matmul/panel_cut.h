// panel_cut.h: how one matmul's panels of weights are cut into jobs for threads. Pure; no bit of a result depends on
// it.
//
// Jobs are handed out as threads come free. Each has an even number of panels, but for the last: one alone is one chain
// for each row, too few to hide the latency of an fma. Of two rounds the first are whole tiles and two thirds of the
// work; the second make up what is left into equal shares. Jobs below 8 panels are not made, unless there is but one.
#pragma once

#include <algorithm>
#include <cstddef>

namespace iha::kernels {

class PanelCut {
 public:
  // panels, threads: at least 1. most_rounds: jobs for each thread, at most; fewer where they would get too small.
  PanelCut(size_t panels, size_t threads, size_t most_rounds)
      : panels_(panels), rounds_(std::clamp<size_t>(panels / kLeastPanels / threads, 1, most_rounds)) {
    jobs_ = rounds_ == 1 ? std::clamp<size_t>(panels / kLeastPanels, 1, threads) : rounds_ * threads;
    if (rounds_ != 2) return;
    firsts_ = threads;
    first_panels_ = panels / threads * 2 / 3 / kTilePanels * kTilePanels;
  }

  [[nodiscard]] size_t jobs() const { return jobs_; }
  [[nodiscard]] size_t rounds() const { return rounds_; }
  // The first panel of job j; jobs(): the end of the last.
  [[nodiscard]] size_t Begin(size_t j) const {
    if (j <= firsts_) return first_panels_ * j;
    if (j == jobs_) return panels_;
    const size_t left = panels_ - first_panels_ * firsts_;
    return first_panels_ * firsts_ + left * (j - firsts_) / (jobs_ - firsts_) / 2 * 2;
  }

 private:
  static constexpr size_t kLeastPanels = 8;
  static constexpr size_t kTilePanels = 4;  // the most of a tile
  size_t panels_, rounds_, jobs_ = 1, firsts_ = 0, first_panels_ = 0;
};

}  // namespace iha::kernels
