// The audit of many seeded rows of every task.
#include <gtest/gtest.h>

#include "tests/benchmarks/ruler/audit.h"
#include "tests/support/roots.h"

namespace iha::benchmarks::ruler {
namespace {

TEST(RulerAudit, FiveHundredRowsAt4096) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  AuditSeededRows(data, cases, 4096, 500);
}

TEST(RulerAudit, FiftyRowsAt32768) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  AuditSeededRows(data, cases, 32768, 50);
}

}  // namespace
}  // namespace iha::benchmarks::ruler
