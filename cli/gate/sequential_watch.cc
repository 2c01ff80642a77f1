#include "cli/gate/sequential_watch.h"

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

constexpr int kSpacing = 10;  // of looks, in times that one takes

absl::Status CheckSpec(const SweepSpec& spec, const std::string& flag) {
  if (spec.models.size() != 1) {
    return FailedPrecondition("{}: {} models; expected one, since its verdict stops the whole sweep", flag,
                              spec.models.size());
  }
  if (spec.item_order.has_value()) return absl::OkStatus();
  return FailedPrecondition("{}: the sweep has no item_order, so that its first items are no random sample", flag);
}

}  // namespace

absl::StatusOr<reports::SequentialReport> EvaluateInOrder(const reports::GateRun& candidate,
                                                          const reports::GateRun& baseline, const GateFlags& flags) {
  IHA_ASSIGN_OR_RETURN(const std::optional<double> margin, MarginOf(flags));
  reports::SequentialOptions options{.gate = GateOptionsOf(flags, margin), .benchmark = flags.target == "benchmark"};
  options.seed = candidate.item_order.value_or(options.seed);
  options.in_step = candidate.item_order.has_value();
  return reports::EvaluateSequentially(candidate, baseline, options);
}

absl::StatusOr<std::unique_ptr<SequentialWatch>> SequentialWatch::Open(const GateFlags& flags, const std::string& flag,
                                                                       const SweepSpec& spec, reports::GateRun known,
                                                                       coordinator::Store& store, Clock& clock) {
  IHA_RETURN_IF_ERROR(CheckSpec(spec, flag));
  std::unique_ptr<SequentialWatch> watch(new SequentialWatch(store, clock));
  IHA_ASSIGN_OR_RETURN(watch->baseline_, ReadGateBaseline(flags, flag, store));
  watch->candidate_ = {.sweep = known.sweep, .model = known.model};
  watch->flags_ = flags;
  if (known.tokenizer.empty()) known.tokenizer = watch->baseline_.tokenizer;
  IHA_RETURN_IF_ERROR(EvaluateInOrder(known, watch->baseline_, flags).status());
  return watch;
}

absl::StatusOr<reports::SequentialReport> SequentialWatch::Report() const {
  IHA_ASSIGN_OR_RETURN(const reports::GateRun run, ReadStoredRun(store_, candidate_));
  return EvaluateInOrder(run, baseline_, flags_);
}

absl::StatusOr<bool> SequentialWatch::Certain(int64_t finished) {
  const absl::Duration begun = clock_.Elapsed();
  if (finished == seen_ || begun < next_) return false;
  IHA_ASSIGN_OR_RETURN(const reports::SequentialReport report, Report());
  const absl::Duration ended = clock_.Elapsed();
  seen_ = finished;
  next_ = ended + kSpacing * (ended - begun);
  return report.verdict != reports::Verdict::kInconclusive;
}

}  // namespace iha::cli
