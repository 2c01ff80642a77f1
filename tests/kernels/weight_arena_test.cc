#include "kernels/support/weight_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace iha::kernels {
namespace {

TEST(WeightArena, AllocationsAreAlignedAndApartAndOutliveTheArena) {
  auto arena = std::make_unique<WeightArena>();
  struct Part {
    std::shared_ptr<uint8_t> memory;
    size_t bytes;
  };
  std::vector<Part> parts;
  // Small ones, a chunk's end, and one that is large enough for pages of its own.
  for (const size_t bytes : {1, 64, 100, 4096, 3 << 20, 2 << 20, 7, 9 << 20, 3 << 20, 65}) {
    parts.push_back({arena->Allocate(bytes), bytes});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parts.back().memory.get()) % 64, 0u) << bytes;
    std::memset(parts.back().memory.get(), static_cast<int>(parts.size()), bytes);
  }
  arena.reset();
  for (size_t i = 0; i < parts.size(); i++) {
    for (const size_t at : {size_t{0}, parts[i].bytes / 2, parts[i].bytes - 1}) {
      EXPECT_EQ(parts[i].memory.get()[at], i + 1) << "part " << i << " byte " << at;
    }
  }
}

TEST(WeightArena, WhatWentLastComesBackAndNothingElse) {
  WeightArena arena;
  const auto first = arena.Allocate(1000);
  auto second = arena.Allocate(2000);
  const uint8_t* const at = second.get();
  second.reset();
  auto third = arena.Allocate(500);
  EXPECT_EQ(third.get(), at);
  auto fourth = arena.Allocate(500);
  const uint8_t* const after = fourth.get();
  third.reset();  // not the last: its place stays taken
  const auto fifth = arena.Allocate(500);
  EXPECT_GT(fifth.get(), after);
}

}  // namespace
}  // namespace iha::kernels
