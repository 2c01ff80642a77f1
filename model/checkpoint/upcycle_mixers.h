// upcycle_mixers.h: the entries of the mixers that Upcycle adds. Private to this folder. Pure; thread: any.
#pragma once

#include <cstdint>
#include <vector>

#include "model/checkpoint/config.h"
#include "model/checkpoint/upcycle.h"

namespace iha::checkpoint {

enum class Mixer { kAlphaQ, kAlphaK, kAlphaV, kCollapse };

// Row `row` (first index of the stored tensor) of a layer's mixer, row-major; `spec` is the iha layer.
std::vector<float> MixerRow(const UpcycleOptions& options, const LayerSpec& spec, int64_t heads, int64_t layer,
                            Mixer mixer, int64_t row);

}  // namespace iha::checkpoint
