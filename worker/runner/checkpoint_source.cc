#include "worker/runner/checkpoint_source.h"

#include <filesystem>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/open_model.h"

namespace iha::worker {
namespace {

namespace fs = std::filesystem;

// A name is a relative path of plain components: it comes from a sweep that somebody else wrote.
bool IsPlainRelative(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  return std::all_of(path.begin(), path.end(), [](const fs::path& part) { return part != ".." && part != "."; });
}

}  // namespace

CheckpointSource::CheckpointSource(CheckpointSourceOptions options) : options_(std::move(options)) {
  const absl::StatusOr<std::vector<NumericsSpec>> runnable = model::NumericsOn(options_.device);
  if (!runnable.ok()) return;  // main has refused such a device
  for (const NumericsSpec& spec : *runnable) numerics_[spec.Id()] = spec;
}

std::vector<std::string> CheckpointSource::NumericsIds() const {
  std::vector<std::string> ids;
  for (const auto& [id, spec] : numerics_) ids.push_back(id);
  return ids;
}

absl::StatusOr<std::string> CheckpointSource::FolderOf(const std::string& name) const {
  if (const auto at = options_.folders.find(name); at != options_.folders.end()) return at->second;
  if (options_.models_root.empty() || !IsPlainRelative(name)) {
    return NotFound("not among this worker's models");
  }
  std::error_code error;
  const fs::path root = fs::canonical(options_.models_root, error);
  if (error) return NotFound("--models-root {}: {}", options_.models_root, error.message());
  const fs::path folder = fs::canonical(root / name, error);
  if (error || !fs::is_directory(folder, error)) return NotFound("no such folder below {}", options_.models_root);
  // A link may point anywhere inside the root (hub caches do), not out of it.
  const auto [root_end, rest] = std::mismatch(root.begin(), root.end(), folder.begin(), folder.end());
  if (root_end != root.end()) return NotFound("the folder lies outside {}", options_.models_root);
  return folder.string();
}

absl::StatusOr<ModelOffer> CheckpointSource::Offer(const std::string& name) {
  if (const auto at = offers_.find(name); at != offers_.end()) return at->second;
  IHA_ASSIGN_OR_RETURN(const std::string folder, FolderOf(name));
  IHA_ASSIGN_OR_RETURN(const model::ModelIdentity identity, model::IdentifyModel(folder));
  const ModelOffer offer{.name = name,
                         .weights = identity.weights,
                         .tokenizer = identity.tokenizer,
                         .context_tokens = identity.context_tokens};
  offers_[name] = offer;
  return offer;
}

absl::StatusOr<LoadedModel> CheckpointSource::Load(const std::string& name, const std::string& numerics_id,
                                                   int64_t positions) {
  const auto numerics = numerics_.find(numerics_id);
  if (numerics == numerics_.end()) return InvalidArgument("numerics {}: not among this worker's", numerics_id);
  IHA_ASSIGN_OR_RETURN(const std::string folder, FolderOf(name));
  IHA_ASSIGN_OR_RETURN(const ModelOffer offer, Offer(name));
  IHA_ASSIGN_OR_RETURN(LoadedModel loaded, model::OpenModel(folder, {.threads = options_.threads,
                                                                     .numerics = numerics->second,
                                                                     .device = options_.device,
                                                                     .positions = positions,
                                                                     .clock = options_.clock,
                                                                     .profile_device = options_.profile_device}));
  // The folder may have changed since it was offered: then its results would be stored under another model's name.
  if (loaded.backend->info().weights != offer.weights) {
    offers_.erase(name);  // the next offer is of what is there now
    return FailedPrecondition("{}: the weights changed since they were offered (found {}, offered {})", folder,
                              loaded.backend->info().weights.Hex(), offer.weights.Hex());
  }
  const Digest text = model::TextDigest(*loaded.tokenizer, loaded.eos);
  if (text != offer.tokenizer) {
    offers_.erase(name);
    return FailedPrecondition("{}: the tokenizer or eos ids changed since they were offered (found {}, offered {})",
                              folder, text.Hex(), offer.tokenizer.Hex());
  }
  return loaded;
}

}  // namespace iha::worker
