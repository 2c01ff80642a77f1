// vote.h: Maj@k of one item from n >= k graded samples, exactly.
//
//   kNsTieMean ("ns_tie_mean", default; NeMo-Skills): invalid answers have no vote; answers with equal key form a
//              group, worth what its first sample is; the value is the mean of the tied leading groups, 0 when nothing
//              is valid. For k < n: the exact expectation over uniformly random k-subsets of the n samples.
//   kFirstSeen ("first_seen"): the same groups over the first k samples; a tie goes to the group seen first.
//   kLmEval    ("lm_eval", lm-evaluation-harness majority_vote): the first k samples in index order; votes are raw
//              extracted strings, "[invalid]" included; a tie goes to the string seen first; no estimator.
// Pure, thread-safe. Cost: one pass for k = n. For k < n, for each number of votes t that can lead: a product of
// polynomials of degree k for each group of t or more and each number of leaders; too much of it is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/scoring/rational.h"
#include "common/eval_types.h"

namespace iha::scoring {

enum class VoteRule { kNsTieMean = 0, kFirstSeen, kLmEval };
const char* NameOf(VoteRule rule);
// InvalidArgument lists the known names.
absl::StatusOr<VoteRule> ParseVoteRule(std::string_view name);

struct Ballot {
  std::string raw;  // as extracted
  std::string key;  // of its group: equal answers have equal keys
  bool valid = false;
  Score score;
};

struct VoteResult {
  Rational value;                     // in [0, 1]
  Rational tie;                       // probability that leading groups tie; 0 or 1 at k = n
  std::optional<std::string> winner;  // raw string of the first leading group's first sample, over all n samples;
                                      // kLmEval: of the k that vote, "[invalid]" too; nullopt when none is valid
  int32_t invalid = 0;                // of all n samples
};

// InvalidArgument when k < 1, k > ballots.size(), or the expectation costs too much.
absl::StatusOr<VoteResult> Vote(VoteRule rule, int64_t k, std::span<const Ballot> ballots);

// The fewest samples, 0 to k - ballots.size(), after which the value of Vote(rule, k, all k samples) can be certain
// when `ballots` are the first of them. 0: whatever is still drawn, Vote over `ballots` alone has that value. A new
// answer may be worth anything and may join any group or begin one, so the vote is settled iff the leader's lead over
// every group of other worth is more than what is left (statistics.md, "Early stop in sampling"). For kFirstSeen and
// kLmEval a tie that the leader would win counts as open, too. 1 <= k, ballots.size() <= k.
int64_t SamplesToSettle(VoteRule rule, int64_t k, std::span<const Ballot> ballots);

// pass@k = 1 - C(n - c, k) / C(n, k); nullopt (undefined) for k > n. 0 <= c <= n, k >= 1.
std::optional<Rational> PassAtK(int64_t n, int64_t c, int64_t k);

}  // namespace iha::scoring
