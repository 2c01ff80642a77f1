// A few greedy rows on the imported model; all of them: model_slow_test.cc.
#include "tests/model/torch/require_torch.h"
#include "tests/support/roots.h"
#include "tests/worker/tools/greedy_rows.h"

namespace iha::tools {
namespace {

TEST(GenerateModel, GivesTheGreedyTokensOfTransformers) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  testing::ExpectGreedyRows(model, cases, 5);
}

TEST(GenerateModel, GivesThemThroughLibTorchToo) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  testing::ExpectGreedyRows(model, cases, 3, {"--numerics", "torch"});
}

}  // namespace
}  // namespace iha::tools
