// Flags of `run` as a sweep, and the names that models get from their folders.
#include "cli/run/run_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace iha::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::TempDir;

TEST(RunFlags, NamesAreAsLongAsNeededToDiffer) {
  const TempDir dir;
  for (const char* folder : {"x/one", "a/two", "b/two", "c/a/two"}) {
    std::filesystem::create_directories(dir.File(folder));
  }
  const auto names =
      ModelNames({dir.File("x/one"), dir.File("a/two") + "/", dir.File("b/two"), dir.File("c/../c/a/two")});
  ASSERT_TRUE(names.ok()) << names.status();
  std::vector<std::string> keys;
  for (const auto& [name, folder] : *names) keys.push_back(name);
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_THAT(*names, ::testing::Contains(Pair("one", HasSubstr("/x/one"))));
  EXPECT_THAT(*names, ::testing::Contains(Pair("b/two", HasSubstr("/b/two"))));
  EXPECT_THAT(*names, ::testing::Contains(Pair("c/a/two", HasSubstr("/c/a/two"))));
  EXPECT_THAT(std::string(ModelNames({dir.File("none")}).status().message()), HasSubstr("none: not a directory"));
  // Twice the same folder, however it is spelt.
  EXPECT_THAT(std::string(ModelNames({dir.File("a/two"), dir.File("x/../a/two")}).status().message()),
              HasSubstr("given twice"));
}

TEST(RunFlags, TheSpecsOwnSettingsAreNearerThanFlags) {
  RunFlags flags;
  flags.benches = {"gsm8k_demo", "gsm8k_demo?samples=5&temperature=0.8"};
  flags.samples = 2;
  flags.temperature = 0.1;
  flags.limit = 3;
  flags.fewshot = 1;
  flags.numerics = "fake";
  flags.tag = "tag";
  const auto spec = SpecOf(flags, {"m", "n"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->models.size(), 2u);
  EXPECT_EQ(spec->models[1].name, "n");
  ASSERT_EQ(spec->entries.size(), 2u);
  EXPECT_EQ(spec->entries[0].sampling.samples, 2);
  EXPECT_EQ(spec->entries[0].sampling.temperature, 0.1);
  EXPECT_EQ(spec->entries[1].sampling.samples, 5);
  EXPECT_EQ(spec->entries[1].sampling.temperature, 0.8);
  for (const SweepEntry& entry : spec->entries) {
    EXPECT_EQ(entry.limit, 3);
    EXPECT_EQ(entry.benchmark.options.at("fewshot"), "1");
  }
  EXPECT_EQ(spec->numerics.backend, "fake");
  EXPECT_EQ(spec->run_tag, "tag");

  flags.benches = {"gsm8k_dmeo"};
  EXPECT_THAT(std::string(SpecOf(flags, {"m"}).status().message()), HasSubstr("did you mean \"gsm8k_demo\"?"));
  flags.benches = {"gsm8k_demo?samples=many"};
  EXPECT_THAT(std::string(SpecOf(flags, {"m"}).status().message()), HasSubstr("--bench"));
}

TEST(RunFlags, WhatThisBuildLacksIsUnavailable) {
  RunFlags flags;
  flags.kv_dtype = "bf16";
  ASSERT_TRUE(NumericsOf(flags).ok());
  EXPECT_EQ(NumericsOf(flags)->kv_dtype, "bf16");
  EXPECT_EQ(NumericsOf(flags)->backend, "cpu-exact");
  flags.device = "cuda";
  ASSERT_TRUE(NumericsOf(flags).ok());
  EXPECT_EQ(*NumericsOf(flags), CudaNumerics("cuda-exact"));  // `run` asks this host for the architecture
  flags.device = "emulated";
  ASSERT_TRUE(NumericsOf(flags).ok());
  EXPECT_EQ(NumericsOf(flags)->Id(), "cuda-emulated/2/weights=bf16/act=bf16/kv=bf16");
  flags.numerics = "torch";
  EXPECT_EQ(NumericsOf(flags).status().code(), absl::StatusCode::kUnavailable);
  flags.numerics = "fast";
  ASSERT_TRUE(NumericsOf(flags).ok());
  EXPECT_EQ(NumericsOf(flags)->Id(), "cuda-fast-emulated/1/weights=bf16/act=bf16/kv=bf16");
  flags.device = "cuda";
  ASSERT_TRUE(NumericsOf(flags).ok());
  EXPECT_EQ(*NumericsOf(flags), CudaNumerics("cuda-fast"));
  EXPECT_EQ(CudaDeviceOf(flags), "cuda");
  flags.device = "cuda:1";
  ASSERT_TRUE(NumericsOf(flags).ok());
  EXPECT_EQ(*NumericsOf(flags), CudaNumerics("cuda-fast"));
  EXPECT_EQ(CudaDeviceOf(flags), "cuda:1");
  for (const char* device : {"auto", "cpu"}) {
    flags.device = device;
    EXPECT_EQ(CudaDeviceOf(flags), "cuda");  // of a sweep file whose numerics want one
    const absl::Status status = NumericsOf(flags).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << device;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("--numerics fast: found --device {}", device)));
  }
}

}  // namespace
}  // namespace iha::cli
