// Every greedy row on the imported model, prompts of up to 2,000 tokens among them.
#include "tests/support/roots.h"
#include "tests/worker/tools/greedy_rows.h"

namespace iha::tools {
namespace {

TEST(GenerateModel, GivesTheGreedyTokensOfTransformersOnEveryRow) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  testing::ExpectGreedyRows(model, cases, 0);
}

}  // namespace
}  // namespace iha::tools
