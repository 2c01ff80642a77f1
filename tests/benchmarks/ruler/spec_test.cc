// Which cells a spec of RULER stands for, and what is said of a bad one.
#include "benchmarks/ruler/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/benchmark.h"
#include "benchmarks/ruler/tasks.h"
#include "benchmarks/scoring/ruler_means.h"

namespace iha::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Refusal(const std::string& name) {
  const auto cells = ruler::CellNames(name);
  EXPECT_EQ(cells.status().code(), absl::StatusCode::kInvalidArgument) << name;
  return std::string(cells.status().message());
}

TEST(RulerSpec, NamesOfItsOwnOnly) {
  for (const char* name : {"ruler", "ruler@1", "ruler:vt", "ruler:x@y"}) EXPECT_TRUE(ruler::IsRulerName(name)) << name;
  for (const char* name : {"rule", "rulers", "gsm8k", "ruler_vt", ""}) EXPECT_FALSE(ruler::IsRulerName(name)) << name;
}

TEST(RulerSpec, LengthByLengthInTheTablesOrder) {
  const auto all = ruler::CellNames("ruler");
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_THAT(*all, SizeIs(13));
  EXPECT_EQ(all->front(), "ruler:niah_single_1@4096");
  EXPECT_EQ(all->back(), "ruler:qa_2@4096");
  EXPECT_THAT(*ruler::CellNames("ruler@8192,4096"), SizeIs(26));
  EXPECT_EQ(ruler::CellNames("ruler@8192,4096")->at(13), "ruler:niah_single_1@8192");
  // The order of asking is no part of a sweep's identity.
  EXPECT_THAT(*ruler::CellNames("ruler:vt,niah_single_2@8192,1024"),
              ElementsAre("ruler:niah_single_2@1024", "ruler:vt@1024", "ruler:niah_single_2@8192", "ruler:vt@8192"));
  EXPECT_THAT(*ruler::CellNames("ruler:vt"), ElementsAre("ruler:vt@4096"));
  for (const std::string& name : *all) {
    EXPECT_THAT(*ruler::CellNames(name), ElementsAre(name));
    ASSERT_TRUE(scoring::ParseRulerCell(name).has_value()) << name;
    EXPECT_EQ(scoring::ParseRulerCell(name)->length, 4096);
    EXPECT_NE(ruler::FindTask(scoring::ParseRulerCell(name)->task), nullptr);
  }
}

TEST(RulerSpec, ABadListIsNamed) {
  EXPECT_THAT(Refusal("ruler:vtt@4096"), HasSubstr("ruler:vtt@4096: "));
  EXPECT_THAT(Refusal("ruler:niah_singel_1"), HasSubstr("niah_single_1"));
  EXPECT_THAT(Refusal("ruler:vt,vt@1024"), HasSubstr("task vt is there twice"));
  EXPECT_THAT(Refusal("ruler:@1024"), HasSubstr("task"));
  EXPECT_THAT(Refusal("ruler@4k"), HasSubstr("length '4k'; expected tokens from 1 to 1048576, as in ruler:vt@4096"));
  EXPECT_THAT(Refusal("ruler@"), HasSubstr("length ''"));
  EXPECT_THAT(Refusal("ruler@0"), HasSubstr("length '0'"));
  EXPECT_THAT(Refusal("ruler@-4096"), HasSubstr("length '-4096'"));
  EXPECT_THAT(Refusal("ruler@1048577"), HasSubstr("length '1048577'"));
  EXPECT_THAT(Refusal("ruler@99999999999999999999"), HasSubstr("length"));
  EXPECT_THAT(Refusal("ruler@4096,4096"), HasSubstr("length 4096 is there twice"));
  EXPECT_THAT(Refusal("ruler@4096@8192"), HasSubstr("length '4096@8192'"));
  EXPECT_THAT(Refusal("ruler@4096,"), HasSubstr("length ''"));
}

TEST(RulerSpec, CellsByName) {
  for (const char* name : {"ruler", "ruler:vt", "ruler@4096", "ruler:@4096", "ruler:vt@", "ruler:vt@x", "ruler:vt@-1",
                           "ruler:vt@1,2", "vt@4096"}) {
    EXPECT_FALSE(scoring::ParseRulerCell(name).has_value()) << name;
  }
}

TEST(RulerSpec, ExpandsToCellsThatShareTheOptions) {
  const auto ref = ParseBenchmarkRef("ruler:vt,cwe@1024?mode=seeded&allow_over_context");
  ASSERT_TRUE(ref.ok()) << ref.status();
  EXPECT_EQ(ref->options.at("allow_over_context"), "yes");
  const auto cells = ExpandBenchmark(*ref);
  ASSERT_TRUE(cells.ok()) << cells.status();
  ASSERT_THAT(*cells, SizeIs(2));
  EXPECT_EQ(ToString((*cells)[1]), "ruler:cwe@1024?allow_over_context=yes&mode=seeded");
  EXPECT_THAT(*ExpandBenchmark({.name = "gsm8k", .options = {}}), SizeIs(1));
  EXPECT_FALSE(ParseBenchmarkRef("ruler?allow_over_context&allow_over_context=no").ok());
  EXPECT_FALSE(ParseBenchmarkRef("ruler?mode").ok()) << "only a flag stands alone";
}

}  // namespace
}  // namespace iha::benchmarks
