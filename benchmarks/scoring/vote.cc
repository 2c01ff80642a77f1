#include "benchmarks/scoring/vote.h"

#include <algorithm>
#include <vector>

#include "common/errors.h"

namespace iha::scoring {
namespace {

struct Group {
  int64_t count = 0;
  Rational score;
  const Ballot* first = nullptr;
};

// Valid ballots by key, in order of first appearance.
std::vector<Group> GroupsOf(std::span<const Ballot> ballots) {
  std::vector<Group> groups;
  for (const Ballot& ballot : ballots) {
    if (!ballot.valid) continue;
    const auto same = [&](const Group& g) { return g.first->key == ballot.key; };
    auto it = std::find_if(groups.begin(), groups.end(), same);
    if (it == groups.end()) it = groups.insert(it, Group{0, Rational(ballot.score), &ballot});
    ++it->count;
  }
  return groups;
}

int64_t LargestCount(const std::vector<Group>& groups) {
  int64_t largest = 0;
  for (const Group& group : groups) largest = std::max(largest, group.count);
  return largest;
}

// k = n: the leaders are known.
void VoteOfAll(const std::vector<Group>& groups, VoteResult& result) {
  const int64_t largest = LargestCount(groups);
  int64_t leaders = 0;
  Rational sum;
  for (const Group& group : groups) {
    if (group.count != largest) continue;
    ++leaders;
    sum += group.score;
  }
  if (leaders > 0) result.value = sum / Rational(leaders);
  result.tie = leaders > 1 ? 1 : 0;
}

// Subsets in which every group so far has at most `t` members, by (members taken, groups with exactly t): how many
// there are, and the sum over them of the leaders' scores.
class LeaderTable {
 public:
  LeaderTable(int64_t k, int64_t t) : k_(k), t_(t), max_leaders_(k / t), ways_(Size()), score_(Size()) { ways_[0] = 1; }

  // Lets `group` contribute 0..min(t, count) members.
  void Add(const Group& group) {
    std::vector<Rational> ways(Size()), score(Size());
    const int64_t most = std::min(t_, group.count);
    for (int64_t x = 0; x <= most; ++x) {
      const Rational choose = Rational::Binomial(group.count, x);
      const int64_t lead = x == t_ ? 1 : 0;
      for (int64_t used = 0; used + x <= k_; ++used) {
        for (int64_t leaders = 0; leaders + lead <= max_leaders_; ++leaders) {
          const size_t from = At(used, leaders);
          if (ways_[from].Sign() == 0) continue;
          const size_t to = At(used + x, leaders + lead);
          ways[to] += choose * ways_[from];
          score[to] += choose * (lead == 1 ? score_[from] + group.score * ways_[from] : score_[from]);
        }
      }
    }
    ways_ = std::move(ways);
    score_ = std::move(score);
  }

  // Adds to `value` the sum over all k-subsets with leader count t of the leaders' mean score, and to `ties` the number
  // of those with more than one leader; `invalid` samples fill up the subset.
  void Collect(int64_t invalid, Rational& value, Rational& ties) const {
    for (int64_t used = t_; used <= k_; ++used) {
      const Rational fill = Rational::Binomial(invalid, k_ - used);
      if (fill.Sign() == 0) continue;
      for (int64_t leaders = 1; leaders <= max_leaders_; ++leaders) {
        value += fill * score_[At(used, leaders)] / Rational(leaders);
        if (leaders > 1) ties += fill * ways_[At(used, leaders)];
      }
    }
  }

 private:
  size_t Size() const { return static_cast<size_t>((k_ + 1) * (max_leaders_ + 1)); }
  size_t At(int64_t used, int64_t leaders) const { return static_cast<size_t>(used * (max_leaders_ + 1) + leaders); }

  const int64_t k_;
  const int64_t t_;
  const int64_t max_leaders_;
  std::vector<Rational> ways_;
  std::vector<Rational> score_;
};

void VoteOfSubsets(const std::vector<Group>& groups, int64_t n, int64_t k, VoteResult& result) {
  Rational value, ties;
  for (int64_t t = 1; t <= std::min(k, LargestCount(groups)); ++t) {
    LeaderTable table(k, t);
    for (const Group& group : groups) table.Add(group);
    table.Collect(result.invalid, value, ties);
  }
  const Rational subsets = Rational::Binomial(n, k);
  result.value = value / subsets;
  result.tie = ties / subsets;
}

VoteResult NsTieMean(int64_t k, std::span<const Ballot> ballots, int32_t invalid) {
  VoteResult result;
  result.invalid = invalid;
  const std::vector<Group> groups = GroupsOf(ballots);
  const auto n = static_cast<int64_t>(ballots.size());
  if (k == n) {
    VoteOfAll(groups, result);
  } else {
    VoteOfSubsets(groups, n, k, result);
  }
  const int64_t largest = LargestCount(groups);
  for (const Group& group : groups) {
    if (group.count != largest) continue;
    result.winner = group.first->raw;
    break;
  }
  return result;
}

VoteResult FirstSeen(int64_t k, std::span<const Ballot> ballots, int32_t invalid) {
  VoteResult result;
  result.invalid = invalid;
  const std::vector<Group> groups = GroupsOf(ballots.first(static_cast<size_t>(k)));
  if (groups.empty()) return result;
  const int64_t largest = LargestCount(groups);
  const auto leads = [&](const Group& group) { return group.count == largest; };
  const auto leader = std::find_if(groups.begin(), groups.end(), leads);
  result.value = leader->score;
  result.tie = std::count_if(groups.begin(), groups.end(), leads) > 1 ? 1 : 0;
  result.winner = leader->first->raw;
  return result;
}

VoteResult LmEval(int64_t k, std::span<const Ballot> ballots, int32_t invalid) {
  VoteResult result;
  result.invalid = invalid;
  struct Candidate {
    const Ballot* first;
    int64_t count;
  };
  std::vector<Candidate> candidates;
  for (const Ballot& ballot : ballots.first(static_cast<size_t>(k))) {
    const auto same = [&](const Candidate& c) { return c.first->raw == ballot.raw; };
    auto it = std::find_if(candidates.begin(), candidates.end(), same);
    if (it == candidates.end()) it = candidates.insert(it, Candidate{&ballot, 0});
    ++it->count;
  }
  const auto leader = std::max_element(candidates.begin(), candidates.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.count < b.count; });
  const auto tied =
      std::count_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.count == leader->count; });
  result.value = Rational(leader->first->score);
  result.tie = tied > 1 ? 1 : 0;
  result.winner = leader->first->raw;
  return result;
}

}  // namespace

const char* NameOf(VoteRule rule) {
  switch (rule) {
    case VoteRule::kNsTieMean:
      return "ns_tie_mean";
    case VoteRule::kFirstSeen:
      return "first_seen";
    case VoteRule::kLmEval:
      return "lm_eval";
  }
  return "";
}

absl::StatusOr<VoteRule> ParseVoteRule(std::string_view name) {
  for (const VoteRule rule : {VoteRule::kNsTieMean, VoteRule::kFirstSeen, VoteRule::kLmEval}) {
    if (name == NameOf(rule)) return rule;
  }
  return InvalidArgument("vote rule: unknown '{}'; known: ns_tie_mean, first_seen, lm_eval", name);
}

absl::StatusOr<VoteResult> Vote(VoteRule rule, int64_t k, std::span<const Ballot> ballots) {
  const auto n = static_cast<int64_t>(ballots.size());
  if (k < 1 || k > n)
    return InvalidArgument("maj@k: k = {} but there are {} samples; expected 1 <= k <= samples", k, n);
  const auto invalid = static_cast<int32_t>(
      std::count_if(ballots.begin(), ballots.end(), [](const Ballot& ballot) { return !ballot.valid; }));
  switch (rule) {
    case VoteRule::kNsTieMean:
      return NsTieMean(k, ballots, invalid);
    case VoteRule::kFirstSeen:
      return FirstSeen(k, ballots, invalid);
    case VoteRule::kLmEval:
      return LmEval(k, ballots, invalid);
  }
  return Internal("vote: no such rule");
}

std::optional<Rational> PassAtK(int64_t n, int64_t c, int64_t k) {
  if (k > n) return std::nullopt;
  return Rational(1) - Rational::Binomial(n - c, k) / Rational::Binomial(n, k);
}

}  // namespace iha::scoring
