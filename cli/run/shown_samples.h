// shown_samples.h: the samples that an HTML table shows in full. Blocking: reads every sample of the sweep.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"
#include "reports/render_html.h"

namespace iha::cli {

inline constexpr int64_t kShownSamples = 12;

// Of each job the first samples of its first items: as many that the first metric holds wrong as right, where there
// are, `items` in all.
// Errors: those of coordinator::ReadSamples.
absl::StatusOr<std::vector<reports::SampleGroup>> ShownSamples(coordinator::Store& store, const SweepId& sweep,
                                                               int64_t items);

}  // namespace iha::cli
