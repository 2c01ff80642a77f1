// token_drawing.h: what a backend on a device offers beside Forward (backend.h): tokens are drawn where the logits are,
// so that ids come back in place of rows of logits.
//
// The engine asks Backend::drawing() once; null: it draws by itself from Forward's logits. Either way a row gives the
// same token. Thread, blocking and errors: the backend's.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "model/backend.h"

namespace iha::model {

// The rules of worker/engine/sampler.h for one row.
struct DrawRules {
  double temperature = 0;
  int32_t top_k = 0;
  double top_p = 1;
  std::span<const int32_t> allowed = {};         // not empty: nothing else may be drawn
  std::span<const int32_t> forbidden = {};       // never drawn
  std::span<const int32_t> also_forbidden = {};  // nor these
};

struct RowDraw {
  bool draw = false;  // else nothing is, the caller wants the logits
  DrawRules rules;
  double uniform = 0;  // in [0, 1), not read at temperature 0
};

// No token: none was to be drawn, or the logits or rules leave none; ReadLogits and Sampler::Draw say which.
inline constexpr int32_t kNoToken = -1;

class TokenDrawing {
 public:
  // Forward without its logits. One draw and one token for each wanted row, in the order of Forward's rows: the token
  // that Sampler::Draw takes from that row, or kNoToken.
  [[nodiscard]] virtual absl::Status ForwardAndDraw(std::span<const Segment> segments, std::span<const RowDraw> draws,
                                                    std::span<int32_t> tokens) = 0;
  // Logits of the last ForwardAndDraw, until the next step: of its wanted rows of these indices, increasing;
  // [rows.size()][vocab_size].
  [[nodiscard]] virtual absl::Status ReadLogits(std::span<const int32_t> rows, std::span<float> logits) = 0;

 protected:
  ~TokenDrawing() = default;
};

}  // namespace iha::model
