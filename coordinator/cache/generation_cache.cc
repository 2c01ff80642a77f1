#include "coordinator/cache/generation_cache.h"

#include "common/status_macros.h"

namespace iha::coordinator {

absl::StatusOr<CacheLookup> LookupGenerations(ReadTxn& txn, const std::vector<GenKey>& keys) {
  CacheLookup lookup;
  for (const GenKey& key : keys) {
    IHA_ASSIGN_OR_RETURN(std::optional<ReadTxn::StoredGeneration> stored, txn.FindGeneration(key));
    if (!stored.has_value()) continue;
    if (stored->generation.Checksum() == stored->checksum) {
      lookup.found.push_back(std::move(stored->generation));
    } else {
      lookup.corrupt.push_back(key);
    }
  }
  return lookup;
}

absl::Status RecordCorrupt(WriteTxn& txn, const std::vector<GenKey>& keys, absl::Time now) {
  for (const GenKey& key : keys) {
    IHA_ASSIGN_OR_RETURN(const std::optional<ReadTxn::StoredGeneration> stored, txn.FindGeneration(key));
    if (!stored.has_value()) continue;
    IHA_RETURN_IF_ERROR(txn.AddDivergence({.kind = DivergenceKind::kChecksum,
                                           .subject = key.Hex(),
                                           .worker = {},
                                           .stored = stored->checksum,
                                           .offered = stored->generation.Checksum(),
                                           .at = now}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GenKey>> PutGenerations(WriteTxn& txn, const WorkerId& worker,
                                                   const std::vector<Generation>& generations, absl::Time now) {
  std::vector<GenKey> divergent;
  for (const Generation& generation : generations) {
    IHA_ASSIGN_OR_RETURN(const std::optional<ReadTxn::StoredGeneration> stored, txn.FindGeneration(generation.key));
    if (!stored.has_value()) {
      IHA_RETURN_IF_ERROR(txn.InsertGeneration(generation));
      continue;
    }
    const Digest offered = generation.Checksum();
    if (stored->checksum == offered) {
      if (stored->generation.Checksum() != stored->checksum) IHA_RETURN_IF_ERROR(txn.RepairGeneration(generation));
      continue;
    }
    IHA_RETURN_IF_ERROR(txn.AddDivergence({.kind = DivergenceKind::kGeneration,
                                           .subject = generation.key.Hex(),
                                           .worker = worker,
                                           .stored = stored->checksum,
                                           .offered = offered,
                                           .at = now}));
    divergent.push_back(generation.key);
  }
  return divergent;
}

}  // namespace iha::coordinator
