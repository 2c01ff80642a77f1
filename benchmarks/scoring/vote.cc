#include "benchmarks/scoring/vote.h"

#include <flint/fmpz_poly.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::scoring {
namespace {

constexpr double kMaxWork = 1e9;  // some tens of seconds

struct Group {
  int64_t count = 0;
  Rational score;
  const Ballot* first = nullptr;
};

enum class Voters { kValidByKey, kAllByRaw };

// In order of first appearance.
std::vector<Group> GroupsOf(std::span<const Ballot> ballots, Voters voters = Voters::kValidByKey) {
  const bool all = voters == Voters::kAllByRaw;
  std::vector<Group> groups;
  std::unordered_map<std::string_view, size_t> by_key;
  for (const Ballot& ballot : ballots) {
    if (!ballot.valid && !all) continue;
    const auto [at, is_new] = by_key.emplace(all ? ballot.raw : ballot.key, groups.size());
    if (is_new) groups.push_back(Group{0, Rational(ballot.score), &ballot});
    ++groups[at->second].count;
  }
  return groups;
}

int64_t LargestCount(const std::vector<Group>& groups) {
  int64_t largest = 0;
  for (const Group& group : groups) largest = std::max(largest, group.count);
  return largest;
}

// The raw text of the first leading group's first sample.
std::optional<std::string> WinnerOf(const std::vector<Group>& groups) {
  const int64_t largest = LargestCount(groups);
  for (const Group& group : groups) {
    if (group.count == largest) return group.first->raw;
  }
  return std::nullopt;
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

class Poly {
 public:
  Poly() { fmpz_poly_init(value_); }
  ~Poly() { fmpz_poly_clear(value_); }
  Poly(Poly&& other) noexcept : Poly() { fmpz_poly_swap(value_, other.value_); }
  Poly& operator=(Poly&& other) noexcept {
    fmpz_poly_swap(value_, other.value_);
    return *this;
  }
  fmpz_poly_struct* get() { return value_; }
  const fmpz_poly_struct* get() const { return value_; }
  bool zero() const { return fmpz_poly_is_zero(value_) != 0; }

 private:
  fmpz_poly_t value_;
};

// Subsets in which every group so far has at most `t` members. By the number of groups with exactly t: a polynomial
// whose coefficient of x^u counts those with u members, and one that sums the leaders' scores over them, in multiples
// of 1 / scale. Groups of fewer than t can't lead and are left to `rest`.
class LeaderTable {
 public:
  LeaderTable(int64_t k, int64_t t, size_t leaders, const Rational& scale)
      : k_(k), t_(t), scale_(scale), ways_(leaders + 1), score_(leaders + 1) {
    fmpz_poly_one(ways_[0].get());
  }

  // Lets `group`, of t or more, contribute 0..t members.
  void Add(const Group& group) {
    Poly below;  // 0..t-1 members
    for (int64_t x = 0; x < t_; ++x) {
      const Rational choose = Rational::Binomial(group.count, x);
      fmpz_poly_set_coeff_fmpz(below.get(), x, fmpq_numref(choose.raw()));
    }
    const Rational lead = Rational::Binomial(group.count, t_);
    const Rational worth = group.score * scale_;
    Poly term;
    for (size_t leaders = ways_.size(); leaders-- > 0;) {
      for (Poly* table : {&score_[leaders], &ways_[leaders]}) {
        if (!table->zero()) fmpz_poly_mullow(table->get(), table->get(), below.get(), k_ + 1);
      }
      if (leaders == 0 || ways_[leaders - 1].zero()) continue;
      fmpz_poly_scalar_mul_fmpz(term.get(), ways_[leaders - 1].get(), fmpq_numref(worth.raw()));
      fmpz_poly_add(term.get(), term.get(), score_[leaders - 1].get());
      AddLeading(term, lead, score_[leaders]);
      fmpz_poly_set(term.get(), ways_[leaders - 1].get());
      AddLeading(term, lead, ways_[leaders]);
    }
  }

  // Adds to `value` the sum over all k-subsets with leader count t of the leaders' mean score, and to `ties` the number
  // of those with more than one leader; `rest` samples that can't lead fill up the subset.
  void Collect(int64_t rest, Rational& value, Rational& ties) const {
    for (int64_t used = std::max(t_, k_ - rest); used <= k_; ++used) {
      const Rational fill = Rational::Binomial(rest, k_ - used);
      for (size_t leaders = 1; leaders < ways_.size(); ++leaders) {
        if (ways_[leaders].zero()) continue;
        value += fill * Coefficient(score_[leaders], used) / (Rational(static_cast<int64_t>(leaders)) * scale_);
        if (leaders > 1) ties += fill * Coefficient(ways_[leaders], used);
      }
    }
  }

 private:
  static Rational Coefficient(const Poly& poly, int64_t power) {
    Rational out;
    fmpz_poly_get_coeff_fmpz(fmpq_numref(out.mutable_raw()), poly.get(), power);
    return out;
  }

  // out += lead x^t term, up to x^k.
  void AddLeading(Poly& term, const Rational& lead, Poly& out) const {
    fmpz_poly_scalar_mul_fmpz(term.get(), term.get(), fmpq_numref(lead.raw()));
    fmpz_poly_shift_left(term.get(), term.get(), t_);
    fmpz_poly_truncate(term.get(), k_ + 1);
    fmpz_poly_add(out.get(), out.get(), term.get());
  }

  const int64_t k_;
  const int64_t t_;
  const Rational scale_;
  std::vector<Poly> ways_;
  std::vector<Poly> score_;
};

// A multiple of all the groups' denominators.
Rational ScaleOf(const std::vector<Group>& groups) {
  Rational scale(1);
  fmpz* lcm = fmpq_numref(scale.mutable_raw());
  for (const Group& group : groups) fmpz_lcm(lcm, lcm, fmpq_denref(group.score.raw()));
  return scale;
}

// The groups that can lead with t members, of groups with the largest first, and how many of them can at once.
struct Leading {
  std::span<const Group> groups;
  int64_t most = 0;
};
Leading LeadingWith(std::span<const Group> largest_first, int64_t t, int64_t k) {
  const auto fewer = [t](const Group& group) { return group.count < t; };
  const auto end = std::find_if(largest_first.begin(), largest_first.end(), fewer);
  const auto groups = static_cast<int64_t>(end - largest_first.begin());
  return {largest_first.first(static_cast<size_t>(groups)), std::min(groups, k / t)};
}

// Stops adding up where it is too much: there may be as many terms as samples.
absl::Status CheckWork(std::span<const Group> largest_first, int64_t n, int64_t k, int64_t most) {
  double work = 0;
  for (int64_t t = 1; t <= most && work <= kMaxWork; ++t) {
    const Leading leading = LeadingWith(largest_first, t, k);
    work += static_cast<double>(leading.groups.size()) * static_cast<double>(leading.most + 1) *
            static_cast<double>(k + 1) * (1 + static_cast<double>(t) / 8);
  }
  if (work <= kMaxWork) return absl::OkStatus();
  return InvalidArgument(
      "maj@k: k = {} of {} samples in {} groups costs more than {:.0e} steps; take a smaller k, or all samples", k, n,
      largest_first.size(), kMaxWork);
}

absl::Status VoteOfSubsets(std::vector<Group> groups, int64_t n, int64_t k, VoteResult& result) {
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.count > b.count; });
  const int64_t most = std::min(k, LargestCount(groups));
  IHA_RETURN_IF_ERROR(CheckWork(groups, n, k, most));
  Rational value, ties;
  const Rational scale = ScaleOf(groups);
  for (int64_t t = 1; t <= most; ++t) {
    const Leading leading = LeadingWith(groups, t, k);
    LeaderTable table(k, t, static_cast<size_t>(leading.most), scale);
    int64_t rest = n;
    for (const Group& group : leading.groups) {
      table.Add(group);
      rest -= group.count;
    }
    table.Collect(rest, value, ties);
  }
  const Rational subsets = Rational::Binomial(n, k);
  result.value = value / subsets;
  result.tie = ties / subsets;
  return absl::OkStatus();
}

absl::StatusOr<VoteResult> NsTieMean(int64_t k, std::span<const Ballot> ballots, int32_t invalid) {
  VoteResult result;
  result.invalid = invalid;
  const std::vector<Group> groups = GroupsOf(ballots);
  const auto n = static_cast<int64_t>(ballots.size());
  if (k == n) {
    VoteOfAll(groups, result);
  } else {
    IHA_RETURN_IF_ERROR(VoteOfSubsets(groups, n, k, result));
  }
  result.winner = WinnerOf(groups);
  return result;
}

VoteResult FirstSeen(int64_t k, std::span<const Ballot> ballots, int32_t invalid) {
  VoteResult result;
  result.invalid = invalid;
  result.winner = WinnerOf(GroupsOf(ballots));
  const std::vector<Group> groups = GroupsOf(ballots.first(static_cast<size_t>(k)));
  if (groups.empty()) return result;
  const int64_t largest = LargestCount(groups);
  const auto leads = [&](const Group& group) { return group.count == largest; };
  const auto leader = std::find_if(groups.begin(), groups.end(), leads);
  result.value = leader->score;
  result.tie = std::count_if(groups.begin(), groups.end(), leads) > 1 ? 1 : 0;
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
  std::unordered_map<std::string_view, size_t> by_raw;
  for (const Ballot& ballot : ballots.first(static_cast<size_t>(k))) {
    const auto [at, is_new] = by_raw.emplace(ballot.raw, candidates.size());
    if (is_new) candidates.push_back({&ballot, 0});
    ++candidates[at->second].count;
  }
  const auto leader = std::max_element(candidates.begin(), candidates.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.count < b.count; });
  const auto tied =
      std::count_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.count == leader->count; });
  result.value = Rational(leader->first->score);
  result.tie = tied > 1 ? 1 : 0;
  if (static_cast<size_t>(invalid) < ballots.size()) result.winner = leader->first->raw;
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

int64_t SamplesToSettle(VoteRule rule, int64_t k, std::span<const Ballot> ballots) {
  const int64_t left = k - static_cast<int64_t>(ballots.size());
  if (left == 0) return 0;
  const Voters voters = rule == VoteRule::kLmEval ? Voters::kAllByRaw : Voters::kValidByKey;
  const std::vector<Group> groups = GroupsOf(ballots, voters);
  const int64_t most = LargestCount(groups);
  const auto leader = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.count == most; });
  int64_t rival = 0;  // votes of the largest group that is worth something else; one that is new has none
  for (const Group& group : groups) {
    if (group.score != leader->score) rival = std::max(rival, group.count);
  }
  const int64_t lead = most - rival;
  if (lead > left) return 0;
  return (left - lead) / 2 + 1;  // all of them for the leader: lead + x > left - x
}

std::optional<Rational> PassAtK(int64_t n, int64_t c, int64_t k) {
  if (k > n) return std::nullopt;
  return Rational(1) - Rational::Binomial(n - c, k) / Rational::Binomial(n, k);
}

}  // namespace iha::scoring
