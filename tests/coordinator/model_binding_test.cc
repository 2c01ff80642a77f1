// A model whose context is shorter than an entry's items is refused by name, before anything of the sweep is run.
#include "coordinator/model_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BindTest : public ::testing::Test {
 protected:
  // A second sweep of the fixture's model, of this benchmark.
  void Submit(const BenchmarkRef& benchmark) {
    SweepPlan plan = *Plan(SimSweep(4, 1, 2), SimOpener());
    plan.spec.entries[0].benchmark = benchmark;
    plan.spec.run_tag = "second";
    sweep_ = IdOf(plan.spec);
    for (NewJob& job : plan.jobs) {
      job.spec.sweep = sweep_;
      job.spec.entry.benchmark = benchmark;
      job.id = IdOf(job.spec);
    }
    ASSERT_TRUE(fixture_.store()
                    .Write([&](WriteTxn& txn) {
                      return txn.InsertSweep({.id = sweep_, .spec = plan.spec, .submitted = absl::UnixEpoch()},
                                             plan.jobs);
                    })
                    .ok());
  }

  OfferModelsReply Offer(int64_t context_tokens) {
    OfferModelsReply reply;
    const std::vector<ModelBinding> offers = {{.sweep = {},
                                               .model = fixture_.plan().spec.models[0].name,
                                               .weights = SimWeights("A"),
                                               .tokenizer = SimTokenizer(),
                                               .context_tokens = context_tokens}};
    const absl::Status written = fixture_.store().Write([&](WriteTxn& txn) -> absl::Status {
      auto bound = BindOffers(txn, offers, sweep_);
      if (!bound.ok()) return bound.status();
      reply = *std::move(bound);
      return absl::OkStatus();
    });
    EXPECT_TRUE(written.ok()) << written;
    return reply;
  }

  StoreFixture fixture_;
  SweepId sweep_;
};

TEST_F(BindTest, ATooShortModelIsRefusedAndALongerOneTaken) {
  Submit({.name = "ruler:vt@2048", .options = {}});
  const OfferModelsReply refused = Offer(2047);
  EXPECT_THAT(refused.accepted, IsEmpty());
  ASSERT_EQ(refused.refused.size(), 1u);
  EXPECT_THAT(refused.refused[0], HasSubstr("ruler:vt@2048: items of 2048 tokens, "));
  EXPECT_THAT(refused.refused[0], HasSubstr("has a context of 2047"));
  ASSERT_TRUE(fixture_.store()
                  .Read([&](ReadTxn& txn) -> absl::Status {
                    const auto notes = txn.Notes(sweep_);
                    if (!notes.ok()) return notes.status();
                    EXPECT_THAT(*notes, ElementsAre(HasSubstr("model refused: ruler:vt@2048: items of 2048 tokens")));
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(Offer(2048).refused, IsEmpty());
  EXPECT_EQ(Offer(2048).accepted.size(), 1u);
}

TEST_F(BindTest, AShortModelIsTakenWhereTheOptionSaysSo) {
  Submit({.name = "ruler:vt@2048", .options = {{"allow_over_context", "yes"}}});
  EXPECT_EQ(Offer(64).accepted.size(), 1u);
}

}  // namespace
}  // namespace iha::coordinator
