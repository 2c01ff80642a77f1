#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kTile = 16;  // rows of an mma

IHA_DEVICE void Rotate(float& u, float& v, float c, float s) {
  const float turned = fmaf(u, c, -(v * s));
  v = fmaf(v, c, u * s);
  u = turned;
}

// Where the parts of a block's shared memory begin, in bytes.
struct Plan {
  uint32_t shift;
  uint32_t token;   // of this warp
  uint32_t output;  // of this warp
  uint32_t alpha_stride;
  uint32_t slices;  // of 64 columns, in this block
  uint32_t sums;    // of this token, with a norm
};

struct Place {
  uint32_t half;   // d / 2
  uint32_t first;  // the block's first column; its partners begin at half + first
};

// alpha and the shift tables, by all threads of the block.
template <uint32_t kSteps, uint32_t kTerms>
IHA_DEVICE void LoadConstants(const IhaMixGpuArgs& p, const IhaMixGpuPart& part, const Plan& plan, const Place& place) {
  constexpr uint32_t kChunks = kSteps * kTerms * 2;  // 16 bytes each, of a row of alpha
  const uint32_t rows = (p.shape.heads * p.shape.pseudo + kTile - 1) / kTile * kTile;
  const ptx::Global<const uint16_t> alpha(part.alpha);
  for (uint32_t i = ptx::ThreadX(); i < rows * kChunks; i += kMixGpuWarps * 32) {
    const uint32_t to = i / kChunks * plan.alpha_stride + i % kChunks * 16;
    ptx::CpAsync<16>(ptx::DynamicShared<uint16_t>(to), alpha + size_t{i} * 8);
  }
  ptx::CpCommit();
  if (part.rotate != 0) {
    const ptx::Global<const float> cosines(p.shift_cos), sines(p.shift_sin);
    for (uint32_t i = ptx::ThreadX(); i < p.shape.pseudo * plan.slices * 32; i += kMixGpuWarps * 32) {
      const uint32_t slice = i / 32 / p.shape.pseudo, row = i / 32 % p.shape.pseudo;
      const size_t from = size_t{row} * place.half + place.first + slice * 32 + i % 32;
      const auto to = ptx::DynamicShared<float>(plan.shift + i / 32 * 256 + i % 32 * 8);
      ptx::StoreAs(to, ptx::Pack<float, 2>{{ptx::Load(cosines + from), ptx::Load(sines + from)}});
    }
  }
  ptx::CpWait<0>();
  ptx::SyncThreads();
}

// The heads of a token to this warp's tile, rotated to the token's position. Rows past the heads are zeros.
template <uint32_t kSteps>
IHA_DEVICE void LoadToken(const IhaMixGpuArgs& p, const IhaMixGpuPart& part, const Plan& plan, const Place& place,
                          uint32_t token) {
  const uint32_t chunk = ptx::Lane() % 4, column = place.first + chunk * 8;
  const bool rotate = part.rotate != 0 && part.norm == nullptr;
  float c[8] = {}, s[8] = {};
  if (rotate) {
    const size_t row = ptx::Load(ptx::Global<const uint32_t>(p.first_row) + token);
    const ptx::Global<const float> cosines(p.cos), sines(p.sin);
    for (uint32_t i = 0; i < 2; ++i) {
      const size_t at = row * place.half + column + i * 4;
      const auto four_c = ptx::LoadAs<ptx::Pack<float, 4>>(cosines + at),
                 four_s = ptx::LoadAs<ptx::Pack<float, 4>>(sines + at);
      for (uint32_t j = 0; j < 4; ++j) {
        c[i * 4 + j] = four_c.v[j];
        s[i * 4 + j] = four_s.v[j];
      }
    }
  }
  const ptx::Global<const uint16_t> x(part.x);
  for (uint32_t i = 0; i < kSteps * 2; ++i) {
    const uint32_t head = ptx::Lane() / 4 + i * 8;
    Eight16 low = {}, high = {};
    if (head < p.shape.heads) {
      const size_t at = size_t{token} * part.token_stride + size_t{head} * p.shape.d + column;
      low = ptx::LoadAs<Eight16>(x + at);
      high = ptx::LoadAs<Eight16>(x + (at + place.half));
      if (rotate) {
        float u[8], v[8];
        Widen(low, u);
        Widen(high, v);
        for (uint32_t j = 0; j < 8; ++j) Rotate(u[j], v[j], c[j], s[j]);
        low = Narrow(u);
        high = Narrow(v);
      }
    }
    ptx::StoreAs(ptx::DynamicShared<uint16_t>(plan.token + TileChunk<kMixGpuColumns>(head, chunk)), low);
    ptx::StoreAs(ptx::DynamicShared<uint16_t>(plan.token + TileChunk<kMixGpuColumns>(head, chunk + 4)), high);
  }
  ptx::SyncWarp();
}

// What a lane's 16 columns of a row are multiplied with and rotated by: pairs of columns n and their partners n + 4.
struct NormRope {
  float weight[8][2];
  float cos[4][2], sin[4][2];  // of the token
};

IHA_DEVICE ptx::Pack<float, 2> LoadTwo(ptx::Global<const float> from) { return ptx::LoadAs<ptx::Pack<float, 2>>(from); }

IHA_DEVICE void LoadWeights(const IhaMixGpuPart& part, const Place& place, NormRope& norm) {
  const ptx::Global<const uint16_t> weight(part.norm);
  IHA_UNROLL
  for (uint32_t n = 0; n < 8; ++n) {
    const uint32_t column = place.first + (n < 4 ? n * 8 : place.half + (n - 4) * 8) + ptx::Lane() % 4 * 2;
    const uint32_t pair = ptx::LoadAs<uint32_t>(weight + column);
    norm.weight[n][0] = ptx::LowBF16(pair);
    norm.weight[n][1] = ptx::HighBF16(pair);
  }
}

IHA_DEVICE void LoadAngles(const IhaMixGpuArgs& p, const Place& place, uint32_t token, NormRope& norm) {
  const ptx::Global<const float> cosines(p.cos), sines(p.sin);
  const size_t row = size_t{ptx::Load(ptx::Global<const uint32_t>(p.first_row) + token)} * place.half + place.first;
  IHA_UNROLL
  for (uint32_t n = 0; n < 4; ++n) {
    const auto c = LoadTwo(cosines + (row + n * 8 + ptx::Lane() % 4 * 2));
    const auto s = LoadTwo(sines + (row + n * 8 + ptx::Lane() % 4 * 2));
    for (uint32_t e = 0; e < 2; ++e) {
      norm.cos[n][e] = c.v[e];
      norm.sin[n][e] = s.v[e];
    }
  }
}

// 16 mixed rows: normed over all slices of the token, and rotated to it, in place. `turn` counts calls.
IHA_DEVICE void NormRows(const IhaMixGpuArgs& p, const Plan& plan, const NormRope& norm, uint32_t turn,
                         float (&c)[8][4]) {
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
    IHA_UNROLL
    for (uint32_t n = 0; n < 4; ++n) {
      for (uint32_t e = 0; e < 2; ++e) {
        float u = c[n][2 * part + e] * r * norm.weight[n][e], v = c[n + 4][2 * part + e] * r * norm.weight[n + 4][e];
        Rotate(u, v, norm.cos[n][e], norm.sin[n][e]);
        c[n][2 * part + e] = u;
        c[n + 4][2 * part + e] = v;
      }
    }
  }
}

// 16 mixed rows: rounded (with a norm not), rotated by their pseudo index, rounded, staged. c: column tiles 0-3 and
// their partners 4-7.
template <bool kNorm>
IHA_DEVICE void StageRows(const IhaMixGpuArgs& p, bool rotate, const Plan& plan, uint32_t first_row, float (&c)[8][4]) {
  const uint32_t group = ptx::Lane() / 4, pair = ptx::Lane() % 4;
  for (uint32_t part = 0; part < 2; ++part) {
    const uint32_t row = group + part * 8, pseudo = (first_row + row) % p.shape.pseudo;
    for (uint32_t n = 0; n < 4; ++n) {
      uint32_t low = ptx::PackBF16(c[n][2 * part], c[n][2 * part + 1]);
      uint32_t high = ptx::PackBF16(c[n + 4][2 * part], c[n + 4][2 * part + 1]);
      if (rotate && pseudo != 0) {
        const auto turn = ptx::LoadAs<ptx::Pack<float, 4>>(
            ptx::DynamicShared<float>(plan.shift + pseudo * 256 + (n * 8 + pair * 2) * 8));
        float u0 = ptx::LowBF16(low), u1 = ptx::HighBF16(low), v0 = ptx::LowBF16(high), v1 = ptx::HighBF16(high);
        if constexpr (kNorm) {
          u0 = c[n][2 * part];
          u1 = c[n][2 * part + 1];
          v0 = c[n + 4][2 * part];
          v1 = c[n + 4][2 * part + 1];
        }
        Rotate(u0, v0, turn.v[0], turn.v[1]);
        Rotate(u1, v1, turn.v[2], turn.v[3]);
        low = ptx::PackBF16(u0, u1);
        high = ptx::PackBF16(v0, v1);
      }
      ptx::Store(ptx::DynamicShared<uint32_t>(plan.output + TileChunk<kMixGpuColumns>(row, n) + pair * 4), low);
      ptx::Store(ptx::DynamicShared<uint32_t>(plan.output + TileChunk<kMixGpuColumns>(row, n + 4) + pair * 4), high);
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
    const uint32_t column = place.first + (chunk < 4 ? chunk * 8 : place.half + (chunk - 4) * 8);
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
  const IhaMixGpuPart part = ptx::BlockZ() == 0 ? p.parts[0] : ptx::BlockZ() == 1 ? p.parts[1] : p.parts[2];
  const uint32_t rows = p.shape.heads * p.shape.pseudo, lane = ptx::Lane();
  Place place{p.shape.d / 2, kNorm ? 0 : ptx::BlockY() * (kMixGpuColumns / 2)};
  Plan plan;
  plan.slices = kNorm ? p.shape.d / kMixGpuColumns : 1;
  plan.alpha_stride = kSteps * kTerms * 32 + 16;
  plan.shift = (rows + kTile - 1) / kTile * kTile * plan.alpha_stride;
  const uint32_t warps = plan.shift + p.shape.pseudo * plan.slices * 256;
  plan.token = warps + ptx::WarpIndex() * (kSteps * 16 + 16) * 128;
  plan.output = plan.token + kSteps * 16 * 128;
  plan.sums = warps + kMixGpuWarps * (kSteps * 16 + 16) * 128 + ptx::WarpIndex() / plan.slices * plan.slices * 128;
  LoadConstants<kSteps, kTerms>(p, part, plan, place);
  const bool norm = kNorm && part.norm != nullptr;
  NormRope turn;
  if constexpr (kNorm) {
    const uint32_t slice = ptx::WarpIndex() % plan.slices;
    place.first = slice * (kMixGpuColumns / 2);
    plan.shift += slice * p.shape.pseudo * 256;
    if (norm) LoadWeights(part, place, turn);
  }
  uint32_t turns = 0;
  for (uint32_t i = ptx::WarpIndex() / plan.slices; i < kMixGpuTokens; i += kMixGpuWarps / plan.slices) {
    const uint32_t token = ptx::BlockX() * kMixGpuTokens + i;
    if (token >= p.shape.tokens) break;
    LoadToken<kSteps>(p, part, plan, place, token);
    if (norm) LoadAngles(p, place, token, turn);
    uint32_t b[kSteps][4][4];  // of two column tiles each
    for (uint32_t k = 0; k < kSteps; ++k) {
      for (uint32_t n = 0; n < 4; ++n) {
        const uint32_t at = plan.token + TileChunk<kMixGpuColumns>(k * 16 + lane % 16, n * 2 + lane / 16);
        ptx::LdMatrix<4, true>(b[k][n], ptx::DynamicShared<uint16_t>(at));
      }
    }
    for (uint32_t row = 0; row < rows; row += kTile) {
      float c[8][4] = {};
      for (uint32_t k = 0; k < kSteps * kTerms; ++k) {
        uint32_t a[4];
        const uint32_t at = (row + lane % 16) * plan.alpha_stride + k * 32 + lane / 16 * 16;
        ptx::LdMatrix<4, false>(a, ptx::DynamicShared<uint16_t>(at));
        for (uint32_t n = 0; n < 8; ++n) {
          const uint32_t pair[2] = {b[k % kSteps][n / 2][n % 2 * 2], b[k % kSteps][n / 2][n % 2 * 2 + 1]};
          ptx::MmaBF16(c[n], a, pair);
        }
      }
      if (norm) NormRows(p, plan, turn, turns++, c);
      StageRows<kNorm>(p, part.rotate != 0, plan, row, c);
      WriteRows(p, part, plan, place, token, row);
    }
  }
}

}  // namespace

GpuStatus IhaMixRopeGpu(const IhaMixGpuArgs& args, GpuStream stream) {
  const IhaMixGpuShape& s = args.shape;
  if (s.heads == 0 || s.heads > 32 || s.pseudo == 0 || s.d == 0 || s.d % kMixGpuColumns != 0) return 1;
  if (args.count == 0 || args.count > 3 || args.terms == 0 || args.terms > 2) return 1;
  bool norm = false;
  for (uint32_t i = 0; i < args.count; ++i) norm = norm || args.parts[i].norm != nullptr;
  for (uint32_t i = 0; i < args.count; ++i) {
    if (args.parts[i].token_stride % 8 != 0) return 1;
    if (norm && (args.parts[i].norm != nullptr) != (args.parts[i].rotate != 0)) return 1;
  }
  if (norm && s.d != 64 && s.d != 128 && s.d != 256) return 1;
  if (s.tokens == 0) return 0;
  const LaunchShape shape{(s.tokens + kMixGpuTokens - 1) / kMixGpuTokens, norm ? 1 : s.d / kMixGpuColumns, args.count,
                          kMixGpuWarps * 32,
                          norm ? MixGpuNormSharedBytes(s, args.terms) : MixGpuSharedBytes(s, args.terms)};
  const auto launch = [&](auto kernel) { return LaunchKernel("iha_mix_rope", kernel, shape, stream, args); };
  if (norm && s.heads <= 16) return args.terms == 1 ? launch(MixRope<1, 1, true>) : launch(MixRope<1, 2, true>);
  if (norm) return args.terms == 1 ? launch(MixRope<2, 1, true>) : launch(MixRope<2, 2, true>);
  if (s.heads <= 16) return args.terms == 1 ? launch(MixRope<1, 1, false>) : launch(MixRope<1, 2, false>);
  return args.terms == 1 ? launch(MixRope<2, 1, false>) : launch(MixRope<2, 2, false>);
}

}  // namespace iha::kernels
