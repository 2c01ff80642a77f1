// model_binding.h: which digests a model name stands for within one sweep. First offer wins.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/coordinator_api.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

// Binds each offer in every sweep that has unfinished jobs of the model and no binding yet; a ModelRef that names a
// weights digest is bound to that one only; a model whose context is shorter than an entry's items is refused. Refused
// offers leave a note in the sweep. `only`: this sweep alone. Reply: accepted = models that at least one such sweep is
// bound to with these digests; refused = one line a sweep.
absl::StatusOr<OfferModelsReply> BindOffers(WriteTxn& txn, const std::vector<ModelBinding>& offers,
                                            const std::optional<SweepId>& only);

}  // namespace iha::coordinator
