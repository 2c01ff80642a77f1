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
    for (uint32_t i = ptx::ThreadX(); i < p.shape.pseudo * 32; i += kMixGpuWarps * 32) {
      const size_t from = size_t{i / 32} * place.half + place.first + i % 32;
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
  float c[8] = {}, s[8] = {};
  if (part.rotate != 0) {
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
      if (part.rotate != 0) {
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

// 16 mixed rows: rounded, rotated by their pseudo index, rounded, staged. c: column tiles 0-3 and their partners 4-7.
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

template <uint32_t kSteps, uint32_t kTerms>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kMixGpuWarps * 32, 1) MixRope(IhaMixGpuArgs p) {
  const IhaMixGpuPart part = ptx::BlockZ() == 0 ? p.parts[0] : ptx::BlockZ() == 1 ? p.parts[1] : p.parts[2];
  const uint32_t rows = p.shape.heads * p.shape.pseudo, lane = ptx::Lane();
  const Place place{p.shape.d / 2, ptx::BlockY() * (kMixGpuColumns / 2)};
  Plan plan;
  plan.alpha_stride = kSteps * kTerms * 32 + 16;
  plan.shift = (rows + kTile - 1) / kTile * kTile * plan.alpha_stride;
  plan.token = plan.shift + p.shape.pseudo * 256 + ptx::WarpIndex() * (kSteps * 16 + 16) * 128;
  plan.output = plan.token + kSteps * 16 * 128;
  LoadConstants<kSteps, kTerms>(p, part, plan, place);
  for (uint32_t i = ptx::WarpIndex(); i < kMixGpuTokens; i += kMixGpuWarps) {
    const uint32_t token = ptx::BlockX() * kMixGpuTokens + i;
    if (token >= p.shape.tokens) break;
    LoadToken<kSteps>(p, part, plan, place, token);
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
      StageRows(p, part.rotate != 0, plan, row, c);
      WriteRows(p, part, plan, place, token, row);
    }
  }
}

}  // namespace

GpuStatus IhaMixRopeGpu(const IhaMixGpuArgs& args, GpuStream stream) {
  const IhaMixGpuShape& s = args.shape;
  if (s.heads == 0 || s.heads > 32 || s.pseudo == 0 || s.d == 0 || s.d % kMixGpuColumns != 0) return 1;
  if (args.count == 0 || args.count > 3 || args.terms == 0 || args.terms > 2) return 1;
  for (uint32_t i = 0; i < args.count; ++i) {
    if (args.parts[i].token_stride % 8 != 0) return 1;
  }
  if (s.tokens == 0) return 0;
  const LaunchShape shape{(s.tokens + kMixGpuTokens - 1) / kMixGpuTokens, s.d / kMixGpuColumns, args.count,
                          kMixGpuWarps * 32, MixGpuSharedBytes(s, args.terms)};
  const auto launch = [&](auto kernel) { return LaunchKernel("iha_mix_rope", kernel, shape, stream, args); };
  if (s.heads <= 16) return args.terms == 1 ? launch(MixRope<1, 1>) : launch(MixRope<1, 2>);
  return args.terms == 1 ? launch(MixRope<2, 1>) : launch(MixRope<2, 2>);
}

}  // namespace iha::kernels
