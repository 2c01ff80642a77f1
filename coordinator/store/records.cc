#include "coordinator/store/records.h"

#include <set>

namespace iha::coordinator {

const char* NameOf(AttemptEvent event) {
  switch (event) {
    case AttemptEvent::kGranted:
      return "granted";
    case AttemptEvent::kDone:
      return "done";
    case AttemptEvent::kLost:
      return "lost";
    case AttemptEvent::kFailed:
      return "failed";
    case AttemptEvent::kDrained:
      return "drained";
    case AttemptEvent::kCancelled:
      return "cancelled";
    case AttemptEvent::kRefunded:
      return "refunded";
  }
  return "?";
}

const char* NameOf(DivergenceKind kind) {
  switch (kind) {
    case DivergenceKind::kGeneration:
      return "generation";
    case DivergenceKind::kItem:
      return "item";
    case DivergenceKind::kChecksum:
      return "checksum";
  }
  return "?";
}

std::vector<AttemptRecord> Charged(const std::vector<AttemptRecord>& attempts) {
  std::set<std::pair<ShardId, int64_t>> refunded;
  for (const AttemptRecord& row : attempts) {
    if (row.event == AttemptEvent::kRefunded) refunded.insert({row.shard, row.fence.epoch});
  }
  std::vector<AttemptRecord> charged;
  for (const AttemptRecord& row : attempts) {
    if (row.event != AttemptEvent::kLost && row.event != AttemptEvent::kFailed) continue;
    if (!refunded.contains({row.shard, row.fence.epoch})) charged.push_back(row);
  }
  return charged;
}

}  // namespace iha::coordinator
