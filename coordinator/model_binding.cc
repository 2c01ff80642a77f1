#include "coordinator/model_binding.h"

#include "benchmarks/benchmark.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

std::string Short(const Digest& digest) { return digest.Hex().substr(0, 12); }

// nullopt = accepted; else why not.
absl::StatusOr<std::optional<std::string>> OfferTo(WriteTxn& txn, const SweepId& sweep, const ModelRef& ref,
                                                   const std::vector<ModelBinding>& bindings,
                                                   const ModelBinding& offer) {
  for (const ModelBinding& bound : bindings) {
    if (bound.model != offer.model) continue;
    if (bound.weights == offer.weights && bound.tokenizer == offer.tokenizer) return std::nullopt;
    if (bound.weights == offer.weights) {
      return fmt::format("{}: has tokenizer {}, the sweep is bound to {}", offer.model, Short(offer.tokenizer),
                         Short(bound.tokenizer));
    }
    return fmt::format("{}: has weights {}, the sweep is bound to {}", offer.model, Short(offer.weights),
                       Short(bound.weights));
  }
  if (!ref.weights_digest.empty() && ref.weights_digest != offer.weights.Hex()) {
    return fmt::format("{}: has weights {}, the sweep asks for {}", offer.model, Short(offer.weights),
                       ref.weights_digest.substr(0, 12));
  }
  // A model that is too short for an entry is a mistake of the sweep: said before any of it is run.
  IHA_ASSIGN_OR_RETURN(const std::optional<SweepRecord> asked, txn.FindSweep(sweep));
  for (const SweepEntry& entry : asked.has_value() ? asked->spec.entries : std::vector<SweepEntry>()) {
    const absl::Status fits = benchmarks::CheckContext(entry.benchmark, offer.model, offer.context_tokens);
    if (absl::IsInvalidArgument(fits)) return std::string(fits.message());
  }
  ModelBinding binding = offer;
  binding.sweep = sweep;
  IHA_RETURN_IF_ERROR(txn.BindModel(binding));
  return std::nullopt;
}

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

absl::StatusOr<OfferModelsReply> BindOffers(WriteTxn& txn, const std::vector<ModelBinding>& offers,
                                            const std::optional<SweepId>& only) {
  OfferModelsReply reply;
  IHA_ASSIGN_OR_RETURN(const std::vector<OpenModel> open, txn.OpenModels());
  for (const OpenModel& wanted : open) {
    if (only.has_value() && wanted.sweep != *only) continue;
    for (const ModelBinding& offer : offers) {
      if (offer.model != wanted.model.name) continue;
      IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn.Bindings(wanted.sweep));
      IHA_ASSIGN_OR_RETURN(const std::optional<std::string> refused,
                           OfferTo(txn, wanted.sweep, wanted.model, bindings, offer));
      if (!refused.has_value()) {
        if (!Contains(reply.accepted, offer.model)) reply.accepted.push_back(offer.model);
        continue;
      }
      reply.refused.push_back(*refused);
      IHA_RETURN_IF_ERROR(txn.AddNote(wanted.sweep, "model refused: " + *refused));
    }
  }
  return reply;
}

}  // namespace iha::coordinator
