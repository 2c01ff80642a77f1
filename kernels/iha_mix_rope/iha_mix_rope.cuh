// iha_mix_rope.cuh: the kernel behind iha_mix_rope_gpu.h, for heads padded to 16 kSteps. An instantiation a file
// (kernels/CMakeLists.txt).
#pragma once

#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kTile = 16;   // rows of an mma
constexpr uint32_t kAngles = 8;  // of a lane: its 16 columns of a row

// Where the parts of a block's shared memory begin, in bytes.
struct Plan {
  uint32_t shift;
  uint32_t token;   // of this warp
  uint32_t output;  // of this warp
  uint32_t alpha_stride;
  uint32_t slices;  // of 64 columns, in this block
  uint32_t sums;    // of this token, with a norm
  uint32_t begin;   // this block's rows of alpha: begin .. end - 1
  uint32_t end;
};

// A slice of 64 columns: 32 from `first` on and 32 from `first + partner`; its 32 angles begin at `angle` of a table's
// row of `angles`. Column tiles 0 to 3 are of the first 32, 4 to 7 of the others.
struct Place {
  bool halves;  // a pair is a column and its partner, else two columns side by side
  uint32_t angles;
  uint32_t first;
  uint32_t partner;
  uint32_t angle;

  IHA_DEVICE static Place At(const IhaMixGpuArgs& p, uint32_t slice) {
    const bool halves = p.pairing == RopePairing::kHalf;
    return {halves, p.shape.d / 2, slice * (halves ? 32 : 64), halves ? p.shape.d / 2 : 32, slice * 32};
  }
  // Of this lane's two columns of tile n.
  [[nodiscard]] IHA_DEVICE uint32_t Column(uint32_t n) const {
    return first + (n < 4 ? 0 : partner) + n % 4 * 8 + ptx::Lane() % 4 * 2;
  }
  // The i-th of this lane's angles, in the slice.
  [[nodiscard]] IHA_DEVICE uint32_t Angle(uint32_t i) const {
    const uint32_t pair = ptx::Lane() % 4;
    return halves ? i / 2 * 8 + pair * 2 + i % 2 : i * 4 + pair;
  }
};

// A lane's columns of a row (two of each tile), turned by angle(i): a pair of cosine and sine.
template <class AngleOf>
IHA_DEVICE void TurnRow(bool halves, float (&x)[8][2], AngleOf angle) {
  IHA_UNROLL
  for (uint32_t i = 0; i < kAngles; ++i) {
    const ptx::Pack<float, 2> a = angle(i);
    if (halves) {
      Rotate(x[i / 2][i % 2], x[i / 2 + 4][i % 2], a.v[0], a.v[1]);
    } else {
      Rotate(x[i][0], x[i][1], a.v[0], a.v[1]);
    }
  }
}

// alpha and the shift tables, by all threads of the block.
template <uint32_t kSteps, uint32_t kTerms>
IHA_DEVICE void LoadConstants(const IhaMixGpuArgs& p, const IhaMixGpuPart& part, const Plan& plan, uint32_t slice) {
  constexpr uint32_t kChunks = kSteps * kTerms * 2;  // 16 bytes each, of a row of alpha
  const uint32_t rows = (plan.end - plan.begin + kTile - 1) / kTile * kTile;
  const ptx::Global<const uint16_t> alpha(part.alpha);
  for (uint32_t i = ptx::ThreadX(); i < rows * kChunks; i += kMixGpuWarps * 32) {
    const uint32_t to = i / kChunks * plan.alpha_stride + i % kChunks * 16;
    ptx::CpAsync<16>(ptx::DynamicShared<uint16_t>(to), alpha + (size_t{plan.begin} * kChunks + i) * 8);
  }
  ptx::CpCommit();
  if (part.rotate != 0) {
    const ptx::Global<const float> cosines(p.shift_cos), sines(p.shift_sin);
    for (uint32_t i = ptx::ThreadX(); i < p.shape.pseudo * plan.slices * 32; i += kMixGpuWarps * 32) {
      const uint32_t row = i / 32 % p.shape.pseudo, column = (slice + i / 32 / p.shape.pseudo) * 32 + i % 32;
      const size_t from = size_t{row} * (p.shape.d / 2) + column;
      const auto to = ptx::DynamicShared<float>(plan.shift + i / 32 * 256 + i % 32 * 8);
      ptx::StoreAs(to, ptx::Pack<float, 2>{{ptx::Load(cosines + from), ptx::Load(sines + from)}});
    }
  }
  ptx::CpWait<0>();
  ptx::SyncThreads();
}

// Four values at `from`, and four at `from` + apart.
IHA_DEVICE void LoadEight(ptx::Global<const float> from, uint32_t apart, float (&to)[8]) {
  for (uint32_t i = 0; i < 2; ++i) {
    const auto four = ptx::LoadAs<ptx::Pack<float, 4>>(from + i * apart);
    for (uint32_t j = 0; j < 4; ++j) to[i * 4 + j] = four.v[j];
  }
}

// The heads of a token to this warp's tile, rotated to the token's position. Rows past the heads are zeros. kLook:
// whether there is an infinity among them, for all lanes.
template <uint32_t kSteps, bool kLook>
IHA_DEVICE bool LoadToken(const IhaMixGpuArgs& p, const IhaMixGpuPart& part, const Plan& plan, const Place& place,
                          uint32_t token) {
  bool infinite = false;
  const uint32_t chunk = ptx::Lane() % 4, column = place.first + chunk * 8;
  const bool rotate = part.rotate != 0 && part.norm == nullptr;
  float c[8] = {}, s[8] = {};  // of 8 pairs; side by side: of 4 in each half
  if (rotate) {
    const size_t row = ptx::Load(ptx::Global<const uint32_t>(p.first_row) + token);
    const size_t at = row * place.angles + place.angle + chunk * (place.halves ? 8 : 4);
    LoadEight(ptx::Global<const float>(p.cos) + at, place.halves ? 4 : 16, c);
    LoadEight(ptx::Global<const float>(p.sin) + at, place.halves ? 4 : 16, s);
  }
  const ptx::Global<const uint16_t> x(part.x);
  for (uint32_t i = 0; i < kSteps * 2; ++i) {
    const uint32_t head = ptx::Lane() / 4 + i * 8;
    Eight16 low = {}, high = {};
    if (head < p.shape.heads) {
      const size_t at = size_t{token} * part.token_stride + size_t{head} * p.shape.d + column;
      low = ptx::LoadAs<Eight16>(x + at);
      high = ptx::LoadAs<Eight16>(x + (at + place.partner));
      if (rotate) {
        float u[8], v[8];
        Widen(low, u);
        Widen(high, v);
        if (place.halves) {
          for (uint32_t j = 0; j < 8; ++j) Rotate(u[j], v[j], c[j], s[j]);
        } else {
          for (uint32_t j = 0; j < 4; ++j) Rotate(u[2 * j], u[2 * j + 1], c[j], s[j]);
          for (uint32_t j = 0; j < 4; ++j) Rotate(v[2 * j], v[2 * j + 1], c[4 + j], s[4 + j]);
        }
        low = Narrow(u);
        high = Narrow(v);
      }
    }
    if constexpr (kLook) {
      for (uint32_t j = 0; j < 4; ++j) infinite = infinite || HasInfinity(low.v[j]) || HasInfinity(high.v[j]);
    }
    ptx::StoreAs(ptx::DynamicShared<uint16_t>(plan.token + TileChunk<kMixGpuColumns>(head, chunk)), low);
    ptx::StoreAs(ptx::DynamicShared<uint16_t>(plan.token + TileChunk<kMixGpuColumns>(head, chunk + 4)), high);
  }
  ptx::SyncWarp();
  if constexpr (kLook) infinite = ptx::Any(ptx::kAllLanes, infinite);
  return infinite;
}

// c += 16 rows of alpha, of the columns from byte `at` on, times the fragments of all heads.
template <uint32_t kSteps, bool kFinite>
IHA_DEVICE void AddRows(const Plan& plan, uint32_t row, uint32_t at, const uint32_t (&b)[kSteps][4][4],
                        float (&c)[8][4]) {
  const uint32_t lane = ptx::Lane();
  IHA_UNROLL
  for (uint32_t k = 0; k < kSteps; ++k) {
    uint32_t a[4];
    ptx::LdMatrix<4, false>(a, ptx::DynamicShared<uint16_t>((row - plan.begin + lane % 16) * plan.alpha_stride + at +
                                                            k * 32 + lane / 16 * 16));
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; ++n) {
      uint32_t pair[2] = {b[k][n / 2][n % 2 * 2], b[k][n / 2][n % 2 * 2 + 1]};
      if constexpr (kFinite) {
        for (uint32_t& two : pair) two = WithoutInfinities(two);
      }
      ptx::MmaBF16(c[n], a, pair);
    }
  }
}

// What a lane's 16 columns of a row are multiplied with and rotated by.
struct NormRope {
  float weight[8][2];
  ptx::Pack<float, 2> angles[kAngles];  // of the token
};

IHA_DEVICE void LoadWeights(const IhaMixGpuPart& part, const Place& place, NormRope& norm) {
  const ptx::Global<const uint16_t> weight(part.norm);
  IHA_UNROLL
  for (uint32_t n = 0; n < 8; ++n) {
    const uint32_t pair = ptx::LoadAs<uint32_t>(weight + place.Column(n));
    norm.weight[n][0] = ptx::LowBF16(pair);
    norm.weight[n][1] = ptx::HighBF16(pair);
  }
}

IHA_DEVICE void LoadAngles(const IhaMixGpuArgs& p, const Place& place, uint32_t token, NormRope& norm) {
  const ptx::Global<const float> cosines(p.cos), sines(p.sin);
  const size_t row = size_t{ptx::Load(ptx::Global<const uint32_t>(p.first_row) + token)} * place.angles + place.angle;
  IHA_UNROLL
  for (uint32_t i = 0; i < kAngles; ++i) {
    norm.angles[i] = {{ptx::Load(cosines + (row + place.Angle(i))), ptx::Load(sines + (row + place.Angle(i)))}};
  }
}

// 16 mixed rows: normed over all slices of the token, and rotated to it, in place. `turn` counts calls.
IHA_DEVICE void NormRows(const IhaMixGpuArgs& p, const Plan& plan, const Place& place, const NormRope& norm,
                         uint32_t turn, float (&c)[8][4]) {
  const uint32_t slice = ptx::WarpIndex() % plan.slices, group = ptx::WarpIndex() / plan.slices;
  const auto sums = ptx::DynamicShared<float>(plan.sums + turn % 2 * plan.slices * 64);
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    float sum = 0.0f;
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; ++n) {
      for (uint32_t e = 2 * part; e < 2 * part + 2; ++e) sum = fmaf(c[n][e], c[n][e], sum);
    }
    sum = SumLanes(sum, 4);
    if (ptx::Lane() % 4 == 0) ptx::Store(sums + (slice * 16 + part * 8 + ptx::Lane() / 4), sum);
  }
  ptx::BarSync(1 + group, plan.slices * 32);
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < plan.slices; ++i) sum += ptx::Load(sums + (i * 16 + part * 8 + ptx::Lane() / 4));
    const uint32_t count = p.norm_mean_of == 0 ? p.shape.d : p.norm_mean_of;
    const float r = ptx::Rsqrt(sum / static_cast<float>(count) + p.norm_eps);
    float x[8][2];
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; ++n) {
      for (uint32_t e = 0; e < 2; ++e) x[n][e] = c[n][2 * part + e] * r * norm.weight[n][e];
    }
    TurnRow(place.halves, x, [&](uint32_t i) { return norm.angles[i]; });
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; ++n) {
      for (uint32_t e = 0; e < 2; ++e) c[n][2 * part + e] = x[n][e];
    }
  }
}

// 16 mixed rows: rounded (with a norm not), rotated by their pseudo index, rounded, staged.
template <bool kNorm>
IHA_DEVICE void StageRows(const IhaMixGpuArgs& p, bool rotate, const Plan& plan, const Place& place, uint32_t first_row,
                          const float (&c)[8][4]) {
  const uint32_t group = ptx::Lane() / 4, pair = ptx::Lane() % 4;
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    const uint32_t row = group + part * 8, pseudo = (first_row + row) % p.shape.pseudo;
    float x[8][2];
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; ++n) {
      for (uint32_t e = 0; e < 2; ++e) {
        const float mixed = c[n][2 * part + e];
        x[n][e] = kNorm ? mixed : ptx::BF16ToFloat(ptx::FloatToBF16(mixed));
      }
    }
    if (rotate && pseudo != 0) {
      const auto turns = ptx::DynamicShared<float>(plan.shift + pseudo * 256);
      TurnRow(place.halves, x,
              [&](uint32_t i) { return ptx::LoadAs<ptx::Pack<float, 2>>(turns + place.Angle(i) * 2); });
    }
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; ++n) {
      ptx::Store(ptx::DynamicShared<uint32_t>(plan.output + TileChunk<kMixGpuColumns>(row, n) + pair * 4),
                 ptx::PackBF16(x[n][0], x[n][1]));
    }
  }
  ptx::SyncWarp();
}

IHA_DEVICE void WriteRows(const IhaMixGpuArgs& p, const IhaMixGpuPart& part, const Plan& plan, const Place& place,
                          uint32_t token, uint32_t first_row) {
  const uint32_t heads = p.shape.heads, pseudo = p.shape.pseudo;
  const ptx::Global<uint16_t> y(part.y);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t at = i * 32 + ptx::Lane(), row = at / 8, chunk = at % 8;
    if (first_row + row >= heads * pseudo) continue;
    const uint32_t h = (first_row + row) / pseudo, j = (first_row + row) % pseudo;
    const uint32_t column = place.first + (chunk < 4 ? 0 : place.partner) + chunk % 4 * 8;
    const size_t virtual_row = (size_t{token} * pseudo + j) * heads + h;
    ptx::StoreAs(
        y + (virtual_row * p.shape.d + column),
        ptx::LoadAs<Eight16>(ptx::DynamicShared<uint16_t>(plan.output + TileChunk<kMixGpuColumns>(row, chunk))));
  }
  ptx::SyncWarp();
}

// kNorm: the block has all columns, kMixGpuWarps / slices tokens at once.
template <uint32_t kSteps, uint32_t kTerms, bool kNorm>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kMixGpuWarps * 32, 1) MixRope(IhaMixGpuArgs p) {
  const uint32_t which = ptx::BlockZ() % p.count, rows = p.shape.heads * p.shape.pseudo, lane = ptx::Lane();
  const IhaMixGpuPart part = which == 0 ? p.parts[0] : which == 1 ? p.parts[1] : p.parts[2];
  Plan plan;
  plan.begin = ptx::BlockZ() / p.count * p.block_rows;
  plan.end = plan.begin + p.block_rows < rows ? plan.begin + p.block_rows : rows;
  plan.slices = kNorm ? p.shape.d / kMixGpuColumns : 1;
  plan.alpha_stride = kSteps * kTerms * 32 + 16;
  plan.shift = p.block_rows * plan.alpha_stride;
  const uint32_t warps = plan.shift + p.shape.pseudo * plan.slices * 256;
  plan.token = warps + ptx::WarpIndex() * (kSteps * 16 + 16) * 128;
  plan.output = plan.token + kSteps * 16 * 128;
  plan.sums = warps + kMixGpuWarps * (kSteps * 16 + 16) * 128 + ptx::WarpIndex() / plan.slices * plan.slices * 128;
  const uint32_t first_slice = kNorm ? 0 : ptx::BlockY();
  LoadConstants<kSteps, kTerms>(p, part, plan, first_slice);
  const bool norm = kNorm && part.norm != nullptr;
  const uint32_t slice = ptx::WarpIndex() % plan.slices;
  const Place place = Place::At(p, first_slice + slice);
  plan.shift += slice * p.shape.pseudo * 256;
  NormRope turn;
  if constexpr (kNorm) {
    if (norm) LoadWeights(part, place, turn);
  }
  uint32_t turns = 0;
  for (uint32_t i = ptx::WarpIndex() / plan.slices; i < kMixGpuTokens; i += kMixGpuWarps / plan.slices) {
    const uint32_t token = ptx::BlockX() * kMixGpuTokens + i;
    if (token >= p.shape.tokens) break;
    const bool infinite = LoadToken<kSteps, kTerms == 2>(p, part, plan, place, token);
    if (norm) LoadAngles(p, place, token, turn);
    uint32_t b[kSteps][4][4];  // of two column tiles each
    IHA_UNROLL
    for (uint32_t k = 0; k < kSteps; ++k) {
      IHA_UNROLL
      for (uint32_t n = 0; n < 4; ++n) {
        const uint32_t at = plan.token + TileChunk<kMixGpuColumns>(k * 16 + lane % 16, n * 2 + lane / 16);
        ptx::LdMatrix<4, true>(b[k][n], ptx::DynamicShared<uint16_t>(at));
      }
    }
    for (uint32_t row = plan.begin; row < plan.end; row += kTile) {
      float c[8][4] = {};
      AddRows<kSteps, false>(plan, row, 0, b, c);
      if constexpr (kTerms == 2) {
        if (infinite) {
          AddRows<kSteps, true>(plan, row, kSteps * 32, b, c);
        } else {
          AddRows<kSteps, false>(plan, row, kSteps * 32, b, c);
        }
      }
      if (norm) NormRows(p, plan, place, turn, turns++, c);
      StageRows<kNorm>(p, part.rotate != 0, plan, place, row, c);
      WriteRows(p, part, plan, place, token, row);
    }
  }
}

}  // namespace

template <uint32_t kSteps, uint32_t kTerms, bool kNorm>
GpuStatus LaunchMixRope(const IhaMixGpuArgs& args, GpuStream stream) {
  const IhaMixGpuShape& s = args.shape;
  const uint32_t pieces = (s.heads * s.pseudo + args.block_rows - 1) / args.block_rows;
  const LaunchShape shape{(s.tokens + kMixGpuTokens - 1) / kMixGpuTokens, kNorm ? 1 : s.d / kMixGpuColumns,
                          args.count * pieces, kMixGpuWarps * 32,
                          MixGpuSharedBytes(s, args.terms, kNorm, args.block_rows)};
  return LaunchKernel("iha_mix_rope", MixRope<kSteps, kTerms, kNorm>, shape, stream, args);
}

}  // namespace iha::kernels
