// Entries that stop settled votes: which prefixes of an item's samples the coordinator takes, and fsck finds sound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/ingest/regrade.h"
#include "coordinator/planner/planner.h"
#include "coordinator/store/invariants.h"
#include "tests/coordinator/sim_world.h"

namespace iha::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kSamples = 5;

SweepSpec VotesOf(bool stop) {
  SweepSpec spec = SimSweep(2, kSamples, 2);
  spec.entries[0].metrics = {"maj@5?metric=sim.exact"};
  spec.entries[0].stop_settled_votes = stop;
  spec.item_order = 7;
  return spec;
}

class SettledVotes : public ::testing::Test {
 protected:
  void Start(bool stop) {
    ASSERT_TRUE(world_.Open().ok());
    const auto sweep = coordinator().Submit(VotesOf(stop));
    ASSERT_TRUE(sweep.ok()) << sweep.status();
    sweep_ = *sweep;
    ASSERT_TRUE(coordinator()
                    .RegisterWorker(
                        {.request_id = {"h"}, .worker = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = ""})
                    .ok());
    ASSERT_TRUE(
        coordinator()
            .OfferModels(
                {.request_id = {"o"}, .worker = {"w"}, .offers = {{"m", SimWeights("A"), SimTokenizer(), 1024}}})
            .ok());
    const auto reply = coordinator().AcquireLease({.request_id = {"r"},
                                                   .worker = {"w"},
                                                   .incarnation = 1,
                                                   .models = {"m"},
                                                   .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
    ASSERT_TRUE(reply.ok() && reply->grant.has_value());
    grant_ = *reply->grant;
  }
  Coordinator& coordinator() { return world_.coordinator(); }
  SimWork Work(const SimWorkOptions& options) {
    auto work = DoSimWork(grant_, grant_.range.begin, options);
    EXPECT_TRUE(work.ok()) << work.status();
    return *std::move(work);
  }
  absl::Status Commit(const SimWork& work) {
    EXPECT_TRUE(
        coordinator().PutGenerations({.request_id = {"p"}, .worker = {"w"}, .generations = work.generations}).ok());
    const auto reply = coordinator().CommitItems({.request_id = {"c"},
                                                  .worker = {"w"},
                                                  .shard = grant_.shard,
                                                  .fence = grant_.fence,
                                                  .job_id = grant_.job_id,
                                                  .items = {work.item}});
    return reply.ok() ? reply->outcomes.at(0) : reply.status();
  }

  SimWorld world_{{.name = "votes", .on_disk = false}, ""};
  SweepId sweep_;
  LeaseGrant grant_;
};

TEST_F(SettledVotes, ExactlyTheSamplesThatSettleThemLand) {
  Start(true);
  for (const int32_t samples : {1, 2, 4, 5, 6}) {
    const absl::Status refused = Commit(Work({.text = "same", .samples = samples}));
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << samples << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(" samples; expected 3"));
  }
  const SimWork three = Work({.text = "same", .samples = 3});
  EXPECT_EQ(three.item.values.at(0).unscored, Unscored::kScored);
  EXPECT_EQ(three.item.values.at(0).score, (Score{0, 1}));
  const absl::Status landed = Commit(three);
  EXPECT_TRUE(landed.ok()) << landed;
  EXPECT_THAT(*CheckInvariants(world_.store(), &benchmarks::EntryValues), ::testing::IsEmpty());
}

// Sample k is right for every second k, and wrong in a way of its own otherwise: nothing is settled before the last.
TEST_F(SettledVotes, AnOpenVoteTakesAllSamples) {
  Start(true);
  EXPECT_EQ(Commit(Work({.samples = 3})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Commit(Work({.samples = 4})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Commit(Work({})).ok());
  EXPECT_THAT(*CheckInvariants(world_.store(), &benchmarks::EntryValues), ::testing::IsEmpty());
}

// What settles a vote is what the coordinator reads in the texts, not what the worker says of them.
TEST_F(SettledVotes, AWorkersWordSettlesNothing) {
  Start(true);
  SimWork work = Work({.samples = 3});
  std::vector<std::vector<SampleGrade>> grades;
  for (SampleResult& sample : work.item.samples) {
    sample.grades = work.item.samples[0].grades;
    grades.push_back(sample.grades);
  }
  work.item.values = *benchmarks::EntryValues(grant_.job.entry, grades);
  EXPECT_EQ(work.item.values.at(0).unscored, Unscored::kScored);
  const absl::Status refused = Commit(work);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInternal) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("differs from what the coordinator computes"));
}

TEST_F(SettledVotes, OthersTakeAllSamplesWhateverTheySay) {
  Start(false);
  const absl::Status refused = Commit(Work({.text = "same", .samples = 3}));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("3 samples; expected 5"));
  EXPECT_TRUE(Commit(Work({.text = "same"})).ok());
}

// Stored under other rules: what fsck says of a prefix that settles nothing, and of samples behind a settled vote.
TEST_F(SettledVotes, FsckFindsUnsettledAndNeedlessSamples) {
  Start(true);
  ASSERT_TRUE(Commit(Work({.text = "same", .samples = 3})).ok());
  const auto values_if_settled_after = [](size_t needed) {
    return [needed](const SweepEntry& entry, const std::vector<std::vector<SampleGrade>>& grades) {
      auto values = benchmarks::EntryValues(entry, grades);
      values->at(0).unscored = grades.size() < needed ? Unscored::kUndefined : Unscored::kScored;
      return values;
    };
  };
  EXPECT_THAT(*CheckInvariants(world_.store(), values_if_settled_after(3)), ::testing::IsEmpty());
  EXPECT_THAT(*CheckInvariants(world_.store(), values_if_settled_after(4)),
              ::testing::Contains(HasSubstr("3 samples do not settle its votes")));
  EXPECT_THAT(*CheckInvariants(world_.store(), values_if_settled_after(2)),
              ::testing::Contains(HasSubstr("its votes are settled before its 3 samples")));
}

// What settled a vote for one grader may settle nothing for another: then there is no value, since samples that were
// never drawn could change it.
TEST_F(SettledVotes, RegradedTheyHaveAValueWhereStillSettled) {
  Start(true);
  ASSERT_TRUE(Commit(Work({.text = "same", .samples = 3})).ok());
  const auto values_by = [&](const SimBenchmarkOptions& grader) {
    const auto done = RegradeSweep(world_.store(), sweep_, SimOpener(grader));
    EXPECT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->at(0).metrics.at(0).scored_before, 1);
    std::vector<ItemValue> values;
    EXPECT_TRUE(world_.store()
                    .Read([&](ReadTxn& txn) -> absl::Status {
                      values = (**txn.LoadItemGraded(grant_.job_id, grant_.range.begin, grader.grader_version)).values;
                      return absl::OkStatus();
                    })
                    .ok());
    return values;
  };
  const std::vector<ItemValue> open = values_by({.grader_version = "sim-grader/2", .answers_of_their_own = true});
  EXPECT_EQ(open.at(0).unscored, Unscored::kUndefined);
  EXPECT_EQ(open.at(0).score, Score());
  const std::vector<ItemValue> settled = values_by({.grader_version = "sim-grader/3"});
  EXPECT_EQ(settled.at(0).unscored, Unscored::kScored);
  EXPECT_THAT(*CheckInvariants(world_.store(), &benchmarks::EntryValues), ::testing::IsEmpty());
}

TEST(SettledVotesPlan, OnlyVotesOverAllSamplesInARandomOrderStop) {
  const auto refused = [](const std::function<void(SweepSpec&)>& change) {
    SweepSpec spec = VotesOf(true);
    change(spec);
    const absl::Status status = NormalizeSpec(spec, SimOpener()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_TRUE(NormalizeSpec(VotesOf(true), SimOpener()).ok());
  EXPECT_THAT(refused([](SweepSpec& spec) { spec.item_order.reset(); }), HasSubstr("the sweep has no item_order"));
  EXPECT_THAT(refused([](SweepSpec& spec) { spec.entries[0].metrics.push_back("sim.exact"); }),
              HasSubstr("stop_settled_votes: metric 'sim.exact' is no vote over all 5 samples"));
  EXPECT_THAT(refused([](SweepSpec& spec) { spec.entries[0].sampling.samples = 6; }),
              HasSubstr("'maj@5?metric=sim.exact' is no vote over all 6 samples"));
  EXPECT_THAT(refused([](SweepSpec& spec) {
                spec.entries[0].sampling.samples = 1;
                spec.entries[0].metrics = {"maj@1?metric=sim.exact"};
              }),
              HasSubstr("1 samples an item; expected 2 or more"));
  EXPECT_NE(IdOf(VotesOf(true)), IdOf(VotesOf(false)));
}

}  // namespace
}  // namespace iha::coordinator
