// rank_spread.h: how sure a table's average ranks are (benchmarks/scoring/stats_ranks.h): how far each may lie off, and
// how often the printed order holds.
//
// In each draw the items of a benchmark are resampled once for all models and all columns over these items (entries of
// one benchmark, data and number of items share them), so that what the models share cancels out. Pure; equal tables
// give equal bits on every machine. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace iha::reports {

struct Snapshot;
struct Table;

struct RankSpread {
  double level = 0.95;
  int32_t draws = 2000;
  uint64_t seed = 1234;
  std::vector<double> low, high;           // quantiles of each row's average rank
  std::vector<std::vector<double>> above;  // [a][b]: share of draws that rank row a before b, half where they tie
  double same_order = 0.0;                 // share of draws in which no two rows stand the other way round
};

// Of a table of this snapshot, cells and ranks filled in. Absent where nothing is ranked, and where an imported row is,
// since its items are not known.
std::optional<RankSpread> SpreadOfRanks(const Snapshot& snapshot, const Table& table);

// "Avg. Rank with its items resampled ...": for the notes.
std::string RankSpreadNote(const Table& table, const RankSpread& spread);

}  // namespace iha::reports
