// iha_mix_rope.h: heads mixed into pseudo heads, rotated, and written interleaved (numerics.md, NUM-9).
//
// Of each token, from rows x_m of its H heads (m = 0 .. H-1), for target h and pseudo j:
//   y[h,j] = sum over m of alpha(m,h,j) * x_m, one fma chain in increasing m from +0          ("mix")
//   keys and queries: r(Rot_j(r(y))), x_m rotated already by position n P; values: r(y)
//   with a norm between (post_mix): r(RoPE(RMSNorm(y))), x_m not rotated
// r rounds to the cache type (fp32: nothing; queries always fp32). Virtual token (n, j) has index n P + j.
//
// Two places to write to. Rows: [token][h][j][d], dense, fp32. Virtual key blocks: attention's KvLayout over virtual
// indices, so that a cache block of 64 tokens holds P of them a head: virtual block b of head h starts (h P + b mod P)
// * layout.bytes() into the slice. They are written by token (append) or one block at a time (from a cache of base
// rows); the bits of an element depend on its token's rows only, so both ways, any threads and any vector width agree.
// Arguments are trusted. Blocks until written; sources are only read. Source: paper.md, Definition and its identity
// RoPE(sum a_m k_m, n P + j) = Rot(j) sum a_m RoPE(k_m, n P).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/rope/rope.h"
#include "kernels/support/parallel_for.h"
#include "kernels/support/small_float.h"

namespace iha::kernels {

enum class IhaAlphaLayout {
  kSourceTargetPseudo,  // [m][h][j]
  kTargetPseudoSource,  // [h][j][m], what the kernels read
};
// alpha: [heads * heads * pseudo] as stored; packed: as many, [h][j][m].
void IhaPackAlpha(IhaAlphaLayout layout, size_t heads, size_t pseudo, const float* alpha, float* packed);

struct IhaShape {
  size_t heads = 0;
  size_t pseudo = 0;  // P
  size_t d = 0;
};

// Row m of token t at element t * token_stride + m * head_stride of x, in fp32 or bf16 (widened exactly).
struct IhaSource {
  const void* x = nullptr;
  StorageType type = StorageType::kF32;
  size_t token_stride = 0;
  size_t head_stride = 0;
};

// One of q, k, v: where its rows come from and what happens to a mixed row.
struct IhaMix {
  const float* alpha = nullptr;  // [h][j][m]
  IhaSource source = {};
  StorageType round = StorageType::kF32;  // r
  // RMSNorm between mix and rotation (then r comes once, at the end); null: none.
  const float* norm = nullptr;
  float norm_eps = 0.0f;
  bool norm_plus_one = false;
  // Rotation by tables [row][d / 2]; null: none. Pseudo j of token t is rotated by row first_row[t] + j * row_step.
  // first_row null: by row j, and j = 0 is left alone (Rot_0 is the identity).
  const float* cos = nullptr;
  const float* sin = nullptr;
  const uint32_t* first_row = nullptr;
  uint32_t row_step = 0;
  RopePairing pairing = RopePairing::kHalf;
};

// out: [tokens][heads][pseudo][d].
void IhaMixRows(const IhaShape& shape, const IhaMix& mix, size_t tokens, float* out, ParallelFor& parallel);

// Keys and values of new tokens to their virtual key blocks. slices[t]: this layer's slice of the cache block of token
// t; positions[t]: its position. layout: of one virtual key block of one head (d_v = d).
void IhaMixToCache(const IhaShape& shape, const IhaMix& keys, const IhaMix& values, const KvLayout& layout,
                   size_t tokens, uint8_t* const* slices, const uint32_t* positions, ParallelFor& parallel);

// Slots 0 .. slots - 1 of virtual key block `part` (0 .. P-1) of head h into `block`, from the base rows of the 64
// tokens of a cache block (source token 0 = the block's first). Runs on the calling thread.
void IhaMixBlock(const IhaShape& shape, const IhaMix& keys, const IhaMix& values, const KvLayout& layout, size_t head,
                 size_t part, size_t slots, void* block);

// The base rows of one token as the cache keeps them: dst [heads][d] of `type`, rounded to nearest even.
void IhaStoreBase(const IhaShape& shape, const float* x, size_t head_stride, StorageType type, void* dst);

// In double, straight from the equations: y[token][h][j] = RoPE(RMSNorm?(sum_m alpha(m,h,j) x_m), position), position
// first_position[t] + j * step, angle = position * frequency, cos and sin times `factor`. alpha in its stored layout; x
// neither rotated nor rounded. frequency null: no rotation. norm null: none.
struct IhaMixRefArgs {
  IhaAlphaLayout layout = IhaAlphaLayout::kSourceTargetPseudo;
  const float* alpha = nullptr;
  const float* x = nullptr;  // [tokens][heads][d]
  const float* norm = nullptr;
  double norm_eps = 0.0;
  const double* frequency = nullptr;  // [d / 2]
  double factor = 1.0;
  const uint32_t* first_position = nullptr;
  uint32_t step = 0;
  RopePairing pairing = RopePairing::kHalf;
};
void IhaMixRef(const IhaShape& shape, const IhaMixRefArgs& args, size_t tokens, double* y);

}  // namespace iha::kernels
