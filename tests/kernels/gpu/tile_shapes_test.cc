// The shapes that launchers choose, as tables, and that every one of them fits a device.
#include <gtest/gtest.h>

#include "kernels/attention/attention_gpu.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/logits/sample_gpu.h"
#include "kernels/matmul/matmul_gpu.h"
#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "kernels/simt/device.h"
#include "kernels/talking_heads/talking_heads_gpu.h"

namespace iha::kernels {
namespace {

TEST(GpuTileShapes, Matmul) {
  struct Line {
    uint32_t m, rows, columns, warps;
    size_t shared_bytes;
  };
  for (const Line& line : {Line{1, 16, 64, 4, 30720}, Line{16, 16, 64, 4, 30720}, Line{17, 128, 128, 8, 98304},
                           Line{4096, 128, 128, 8, 98304}}) {
    const MatmulGpuTile tile = MatmulGpuTileFor(line.m);
    EXPECT_EQ(tile.rows, line.rows) << line.m;
    EXPECT_EQ(tile.columns, line.columns) << line.m;
    EXPECT_EQ(tile.warps, line.warps) << line.m;
    EXPECT_EQ(tile.shared_bytes(), line.shared_bytes) << line.m;
  }
}

TEST(GpuTileShapes, RmsNorm) {
  struct Line {
    uint32_t n, threads, rows;
  };
  for (const Line& line : {Line{8, 32, 4}, Line{64, 32, 4}, Line{1024, 32, 4}, Line{1032, 64, 1}, Line{2048, 64, 1},
                           Line{2560, 96, 1}, Line{4096, 128, 1}, Line{kMaxRmsNormGpu, 1024, 1}}) {
    EXPECT_EQ(RmsNormTileFor(line.n).threads, line.threads) << line.n;
    EXPECT_EQ(RmsNormTileFor(line.n).rows, line.rows) << line.n;
  }
  for (uint32_t n = 8; n <= kMaxRmsNormGpu; n += 8) {
    ASSERT_LE(RmsNormTileFor(n).threads, 1024u);
    ASSERT_GE(RmsNormTileFor(n).threads * 8 * kRmsNormPacks, n);
  }
}

TEST(GpuTileShapes, Attention) {
  struct Line {
    uint32_t max_rows, d, d_v, warps;
    size_t shared_bytes;
  };
  for (const Line& line : {Line{1, 64, 64, 1, 34816}, Line{16, 64, 64, 1, 34816}, Line{17, 64, 64, 4, 40960},
                           Line{8192, 64, 128, 4, 65536}, Line{20, 128, 128, 4, 81920}, Line{4, 128, 256, 1, 106496},
                           Line{300, 256, 256, 4, 163840}}) {
    const uint32_t warps = AttentionGpuWarps(line.max_rows);
    EXPECT_EQ(warps, line.warps) << line.max_rows;
    EXPECT_EQ(AttentionGpuSharedBytes(warps, line.d, line.d_v), line.shared_bytes) << line.d << ", " << line.d_v;
    EXPECT_LE(line.shared_bytes, kGpuMaxSharedBytes);
  }
}

static_assert(VisibleTo({.window = 4}, 2).first == 0 && VisibleTo({.window = 4}, 4).first == 1);
static_assert(VisibleTo({.pseudo = 3, .token_causal = true}, 4).last == 5);
static_assert(VisibleTo({.pseudo = 3, .token_window = true, .window = 2}, 10).first == 6);

// H200: 132 multiprocessors.
TEST(GpuTileShapes, PiecesOfASplit) {
  struct Line {
    uint32_t blocks, max_rows, max_keys, split;
  };
  for (const Line& line : {Line{20, 1, 8192, 640},                                                       // 14 pieces
                           Line{20, 20, 163840, 11712}, Line{20, 64, 8192, 640}, Line{20, 65, 8192, 0},  // prefill
                           Line{1, 1, 65536, 256},                           // 264 pieces would be of 249 keys
                           Line{20, 1, 512, 256}, Line{20, 1, 256, 0},       // one piece
                           Line{263, 1, 8192, 4096}, Line{264, 1, 8192, 0},  // enough blocks as it is
                           Line{0, 1, 8192, 0}}) {
    EXPECT_EQ(AttentionGpuSplitFor(line.blocks, line.max_rows, line.max_keys, 132), line.split)
        << line.blocks << " blocks, " << line.max_rows << " rows, " << line.max_keys << " keys";
  }
  for (uint32_t blocks = 1; blocks < 300; ++blocks) {
    for (const uint32_t keys : {1u, 64u, 300u, 1000u, 4096u, 100000u}) {
      const uint32_t split = AttentionGpuSplitFor(blocks, 8, keys, 132);
      ASSERT_EQ(split % kGpuKeyBlock, 0u);
      if (split != 0) {
        ASSERT_LE(blocks * ((keys + split - 1) / split), 2 * 132 + blocks);
      }
    }
  }
}

TEST(GpuTileShapes, RowsOfTalkingHeads) {
  struct Line {
    uint32_t sequences, max_rows, max_keys;
    size_t megabytes;
    uint32_t rows;
  };
  // 20 heads: 64 rows of 8192 keys take 40 MiB.
  for (const Line& line :
       {Line{1, 1, 8192, 0, 1}, Line{64, 16, 8192, 0, 16}, Line{1, 64, 8192, 0, 64}, Line{1, 65, 8192, 0, 64},
        Line{1, 4096, 8192, 39, 64}, Line{1, 4096, 8192, 80, 128}, Line{1, 4096, 8192, 1000, 1600},
        Line{1, 100, 8192, 1000, 128}, Line{2, 4096, 8192, 1000, 768}}) {
    const AttentionGpuArgs a{
        .sequences = line.sequences, .max_rows = line.max_rows, .heads = 20, .max_keys = line.max_keys};
    EXPECT_EQ(TalkingHeadsGpuRowsFor(a, line.megabytes << 20), line.rows) << line.max_rows << " rows";
  }
}

// Rows of alpha of a block: all where they fit.
TEST(GpuTileShapes, RowsOfAlpha) {
  struct Line {
    uint32_t heads, pseudo, d, terms;
    bool norm;
    uint32_t rows;
  };
  for (const Line& line : {Line{20, 20, 128, 2, false, 400}, Line{32, 32, 128, 2, false, 1024},
                           Line{64, 8, 64, 2, false, 512}, Line{64, 12, 64, 2, false, 384},    // halves
                           Line{40, 20, 128, 2, false, 400}, Line{32, 64, 256, 2, true, 688},  // thirds
                           Line{1, 1, 64, 1, true, 16}, Line{4, 1000, 64, 1, false, 0}}) {
    const IhaMixGpuShape shape{1, line.heads, line.pseudo, line.d};
    EXPECT_EQ(MixGpuRowsFor(shape, line.terms, line.norm), line.rows) << line.heads << ", " << line.pseudo;
  }
}

// Sixteens of heads that a block of the global collapse holds.
TEST(GpuTileShapes, HeadsOfACollapse) {
  struct Line {
    uint32_t heads, pseudo, terms, xsa_d, tiles;
  };
  for (const Line& line :
       {Line{20, 20, 2, 256, 2}, Line{64, 2, 1, 256, 4}, Line{64, 8, 2, 256, 4}, Line{64, 12, 2, 0, 2},
        Line{40, 20, 2, 128, 2}, Line{64, 20, 2, 256, 2}, Line{64, 120, 1, 0, 0}}) {
    const CollapseGpuLayout layout = CollapseGpuLayoutFor(line.heads, line.pseudo, line.terms);
    EXPECT_EQ(CollapseGpuTilesFor(layout, line.xsa_d), line.tiles) << line.heads << ", " << line.pseudo;
  }
}

// All head counts, pseudo heads and vocabularies that the launchers take: within the shared memory of a block.
TEST(GpuTileShapes, SharedMemoryOfTheRest) {
  for (uint32_t heads = 1; heads <= 64; ++heads) {
    for (uint32_t pseudo = 1; pseudo <= 20; ++pseudo) {
      const CollapseGpuLayout collapse = CollapseGpuLayoutFor(heads, pseudo, 2);
      for (const uint32_t d : {0u, 64u, 256u}) {
        const uint32_t tiles = CollapseGpuTilesFor(collapse, d);
        ASSERT_GT(tiles, 0u) << heads << ", " << pseudo;
        ASSERT_EQ(collapse.rows % (tiles * 16), 0u);
        ASSERT_LE(CollapseGpuSharedBytes(collapse, tiles, d), kGpuMaxSharedBytes) << heads << ", " << pseudo;
      }
      for (const bool norm : {false, true}) {
        const IhaMixGpuShape shape{1, heads, pseudo, 256};
        const uint32_t rows = MixGpuRowsFor(shape, 2, norm);
        ASSERT_GT(rows, 0u) << heads << ", " << pseudo;
        ASSERT_EQ(rows % 16, 0u);
        ASSERT_LE(MixGpuSharedBytes(shape, 2, norm, rows), kGpuMaxSharedBytes) << heads << ", " << pseudo;
      }
    }
  }
  EXPECT_LE(SampleGpuSharedBytes(kSampleGpuMaxN), kGpuMaxSharedBytes);
}

}  // namespace
}  // namespace iha::kernels
