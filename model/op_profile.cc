#include "model/op_profile.h"

#include <cstdlib>

namespace iha::model {

const char* NameOf(Op op) {
  switch (op) {
    case Op::kEmbedding:
      return "embedding";
    case Op::kNorm:
      return "norm";
    case Op::kQkv:
      return "qkv";
    case Op::kPositions:
      return "positions";
    case Op::kAttention:
      return "attention";
    case Op::kCombine:
      return "combine";
    case Op::kAttentionOutput:
      return "attention_output";
    case Op::kMlp:
      return "mlp";
    case Op::kHead:
      return "head";
  }
  std::abort();  // the switch is complete
}

void OpProfile::Note(Op op, const OpWork& work, absl::Duration time) {
  OpTotal& total = totals_[static_cast<size_t>(op)];
  total.calls++;
  total.time += time;
  total.work += work;
}

}  // namespace iha::model
