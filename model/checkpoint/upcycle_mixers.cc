#include "model/checkpoint/upcycle_mixers.h"

#include "common/canonical.h"
#include "common/philox.h"

namespace iha::checkpoint {
namespace {

const char* NameOf(Mixer mixer) {
  switch (mixer) {
    case Mixer::kAlphaQ:
      return "alpha_q";
    case Mixer::kAlphaK:
      return "alpha_k";
    case Mixer::kAlphaV:
      return "alpha_v";
    case Mixer::kCollapse:
      return "collapse";
  }
  return "?";
}

uint64_t StreamOf(uint64_t seed, int64_t layer, Mixer mixer) {
  return CanonicalWriter("iha.upcycle-noise", 1).Uint(seed).Int(layer).String(NameOf(mixer)).Hash().Prefix64();
}

// Mean 0, variance 1 (but for the 2^-32 grid), within +-6: the sum of 12 uniforms less 6. Integers until the last step,
// so it needs no logarithm or cosine, whose last bits differ between libraries.
double Deviate(uint64_t key, uint64_t index) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 3; ++i) {
    const PhiloxBlock block = Philox4x32(key, index, i);
    for (const uint32_t word : block.word) sum += word;
  }
  const auto doubled = static_cast<int64_t>(2 * sum) - 12 * int64_t{0xffffffff};  // symmetric around 0
  return static_cast<double>(doubled) * 0x1p-33;
}

}  // namespace

std::vector<float> MixerRow(const UpcycleOptions& options, const LayerSpec& spec, int64_t heads, int64_t layer,
                            Mixer mixer, int64_t row) {
  const int64_t p = spec.pseudo_heads;
  const uint64_t key = StreamOf(options.seed, layer, mixer);
  // The entry's logical place: (source, target, pseudo) of alpha, (target, source, pseudo) of a collapse.
  const auto entry = [&](int64_t first, int64_t second, int64_t pseudo) {
    const bool own = first == second;
    const double value = !own ? 0.0 : mixer == Mixer::kCollapse ? 1.0 / static_cast<double>(p) : 1.0;
    if (options.noise == 0) return static_cast<float>(value);
    const auto index = static_cast<uint64_t>((first * heads + second) * p + pseudo);
    return static_cast<float>(value + options.noise * Deviate(key, index));
  };
  std::vector<float> values;
  if (mixer == Mixer::kCollapse && spec.collapse == CollapseKind::kPerHead) {
    for (int64_t j = 0; j < p; ++j) values.push_back(entry(row, row, j));
  } else if (mixer == Mixer::kCollapse || spec.alpha_layout == AlphaLayout::kSourceTargetPseudo) {
    for (int64_t other = 0; other < heads; ++other) {
      for (int64_t j = 0; j < p; ++j) values.push_back(entry(row, other, j));
    }
  } else {
    for (int64_t j = 0; j < p; ++j) {
      for (int64_t source = 0; source < heads; ++source) values.push_back(entry(source, row, j));
    }
  }
  return values;
}

}  // namespace iha::checkpoint
