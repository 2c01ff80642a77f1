// The GPU of this host as iha-tool names it: a stand-in program answers in its place, since few hosts have one.
#include "cli/run/local_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace iha::cli {
namespace {

using ::testing::HasSubstr;

void MakeTool(const std::string& folder, const std::string& script) {
  const std::string tool = folder + "/iha-tool";
  std::ofstream(tool) << "#!/bin/sh\n" << script;
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
}

absl::StatusOr<std::string> Ask(const std::string& script, const std::string& backend = kTorchCudaHere) {
  const iha::testing::TempDir folder;
  MakeTool(folder.path(), script);
  return LocalCudaBackend(folder.path(), {.backend = backend}, "cuda");
}

absl::StatusOr<MachinePeak> AskPeak(const std::string& script) {
  const iha::testing::TempDir folder;
  MakeTool(folder.path(), script);
  return LocalMachinePeak(folder.path(), 3);
}

TEST(LocalDevice, TheToolNamesTheArchitecture) {
  const auto backend = Ask("[ \"$*\" = 'torch-backend --device cuda' ] && echo torch-cuda-sm_90\n");
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ(*backend, "torch-cuda-sm_90");
  const auto exact = Ask("[ \"$*\" = 'cuda-backend --device cuda' ] && echo cuda-exact-sm_90\n", kCudaExactHere);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ(*exact, "cuda-exact-sm_90");
  const auto fast = Ask("[ \"$*\" = 'cuda-fast-backend --device cuda' ] && echo cuda-fast-sm_90\n", kCudaFastHere);
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_EQ(*fast, "cuda-fast-sm_90");
}

TEST(LocalDevice, WhatTheToolSaysIsTheError) {
  const absl::Status none = Ask("echo 'no such device' >&2; exit 4\n").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(none.message(), "no such device");
  // A name without an architecture, or none, is never taken.
  for (const char* script : {"echo torch-cuda\n", "echo torch\n", "exit 0\n"}) {
    EXPECT_EQ(Ask(script).status().code(), absl::StatusCode::kUnavailable) << script;
  }
  // Nor one backend's for the other's.
  EXPECT_FALSE(Ask("echo cuda-exact-sm_90\n", kTorchCudaHere).ok());
  EXPECT_FALSE(Ask("echo torch-cuda-sm_90\n", kCudaExactHere).ok());
  EXPECT_FALSE(Ask("echo cuda-exact-sm_90\n", kCudaFastHere).ok());
  EXPECT_FALSE(Ask("echo cuda-fast-sm_90\n", kCudaExactHere).ok());
  EXPECT_EQ(LocalCudaBackend("/nonexistent", {.backend = kTorchCudaHere}, "cuda").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(LocalDevice, ThePeakIsTheToolsOrAnError) {
  const auto peak =
      AskPeak("[ \"$*\" = 'machine-peak --threads 3' ] && echo '{\"fma_gflops\":200.5,\"read_gbs\":40}'\n");
  ASSERT_TRUE(peak.ok()) << peak.status();
  EXPECT_EQ(peak->threads, 3);
  EXPECT_EQ(peak->fma_gflops, 200.5);
  EXPECT_EQ(peak->read_gbs, 40);
  EXPECT_EQ(AskPeak("echo 'out of memory' >&2; exit 4\n").status().message(), "out of memory");
  for (const char* script : {"exit 0\n", "echo '[1]'\n", "echo '{\"fma_gflops\":\"x\",\"read_gbs\":40}'\n",
                             "echo '{\"fma_gflops\":0,\"read_gbs\":40}'\n"}) {
    EXPECT_EQ(AskPeak(script).status().code(), absl::StatusCode::kUnavailable) << script;
  }
}

TEST(LocalDevice, TheBuildIsTheToolsOrAnError) {
  const auto ask = [](const std::string& script) {
    const iha::testing::TempDir folder;
    MakeTool(folder.path(), script);
    return LocalEngineBuild(folder.path());
  };
  const auto build = ask("[ \"$*\" = engine-build ] && echo '{\"simd\":\"AVX2\",\"build\":\"Highway 1\"}'\n");
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_EQ(build->simd, "AVX2");
  EXPECT_EQ(build->build, "Highway 1");
  for (const char* script : {"exit 0\n", "echo '{\"simd\":\"\",\"build\":\"x\"}'\n", "echo '{\"simd\":\"AVX2\"}'\n"}) {
    EXPECT_EQ(ask(script).status().code(), absl::StatusCode::kUnavailable) << script;
  }
}

}  // namespace
}  // namespace iha::cli
