#include "model/torch_ops/cpu_ops.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/diff/diff.h"
#include "kernels/gate/gate.h"
#include "kernels/iha_collapse/iha_collapse.h"
#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "kernels/support/aligned.h"
#include "kernels/support/thread_pool.h"
#include "kernels/talking_heads/talking_heads.h"
#include "kernels/xsa/xsa.h"
#include "model/torch_ops/op_shapes.h"

namespace iha::torch_ops::cpu {
namespace {

// As many threads as LibTorch would use. Starting them costs less than any call that gains by them.
kernels::ThreadPool Threads(const at::Tensor& work) {
  constexpr int64_t kSmall = 1 << 16;
  return kernels::ThreadPool(work.numel() < kSmall ? 1 : at::get_num_threads());
}

size_t Size(int64_t n) { return static_cast<size_t>(n); }

// The keys and values of one sequence in blocks as the kernels read them.
class Cache {
 public:
  // k, v: contiguous rows of the sequence.
  Cache(const AttentionShape& s, const float* k, const float* v)
      : layout_{kernels::StorageType::kF32, Size(s.d), Size(s.d_v), Size(s.kv_heads / s.value_heads)} {
    const size_t blocks = (Size(s.keys) + kernels::kKeyBlock - 1) / kernels::kKeyBlock;
    const size_t bytes = layout_.bytes() * Size(s.value_heads);
    memory_ = kernels::MakeAligned<uint8_t>(blocks * bytes);
    for (size_t b = 0; b < blocks; b++) blocks_.push_back(memory_.get() + b * bytes);
    const size_t key_row = Size(s.kv_heads * s.d), value_row = Size(s.value_heads * s.d_v);
    for (size_t t = 0; t < Size(s.keys); t++) {
      for (size_t h = 0; h < Size(s.value_heads); h++) {
        kernels::AppendKv(layout_, memory_.get() + t / kernels::kKeyBlock * bytes + h * layout_.bytes(),
                          t % kernels::kKeyBlock, k + t * key_row + h * layout_.keys * layout_.d,
                          v + t * value_row + h * layout_.d_v);
      }
    }
  }
  const kernels::KvLayout& layout() const { return layout_; }
  const void* const* blocks() const { return blocks_.data(); }

 private:
  const kernels::KvLayout layout_;
  kernels::AlignedArray<uint8_t> memory_;
  std::vector<const void*> blocks_;
};

at::Tensor MixOne(const MixShape& s, const at::Tensor& rows, const at::Tensor& alpha, const kernels::IhaMix& rotation,
                  kernels::ParallelFor& threads) {
  std::vector<float> packed(Size(alpha.numel()));
  const at::Tensor stored = alpha.contiguous();
  kernels::IhaPackAlpha(kernels::IhaAlphaLayout::kSourceTargetPseudo, Size(s.heads), Size(s.pseudo),
                        stored.const_data_ptr<float>(), packed.data());
  kernels::IhaMix mix = rotation;
  mix.alpha = packed.data();
  mix.source = {.x = rows.const_data_ptr(), .token_stride = Size(s.heads * s.d), .head_stride = Size(s.d)};
  const at::Tensor out = at::empty({s.batch, s.tokens, s.heads, s.pseudo, s.d}, rows.options());
  kernels::IhaMixRows({Size(s.heads), Size(s.pseudo), Size(s.d)}, mix, Size(s.batch * s.tokens),
                      out.mutable_data_ptr<float>(), threads);
  return out.transpose(2, 3).contiguous().view({s.batch, s.tokens * s.pseudo, s.heads, s.d});
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> MixRope(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                       const at::Tensor& alpha_q, const at::Tensor& alpha_k,
                                                       const at::Tensor& alpha_v, const at::Tensor& cos,
                                                       const at::Tensor& sin, const at::Tensor& shift_cos,
                                                       const at::Tensor& shift_sin) {
  const MixShape s = CheckMix(at::kFloat, q, k, v, alpha_q, alpha_k, alpha_v, cos, sin, shift_cos, shift_sin);
  kernels::ThreadPool threads = Threads(q);
  std::vector<uint32_t> rows(Size(s.batch * s.tokens));
  for (size_t i = 0; i < rows.size(); i++) rows[i] = static_cast<uint32_t>(i % Size(s.tokens));
  const at::Tensor c = cos.contiguous(), n = sin.contiguous(), sc = shift_cos.contiguous(), sn = shift_sin.contiguous();
  const auto rotated = [&](const at::Tensor& x) {
    const at::Tensor out = x.clone(at::MemoryFormat::Contiguous);
    kernels::Rope({.tokens = rows.size(),
                   .heads = Size(s.heads),
                   .token_stride = Size(s.heads * s.d),
                   .head_stride = Size(s.d),
                   .rotary_dim = Size(s.d)},
                  out.mutable_data_ptr<float>(), rows.data(), c.const_data_ptr<float>(), n.const_data_ptr<float>(),
                  threads);
    return out;
  };
  kernels::IhaMix turn;
  turn.cos = sc.const_data_ptr<float>();
  turn.sin = sn.const_data_ptr<float>();
  return {MixOne(s, rotated(q), alpha_q, turn, threads), MixOne(s, rotated(k), alpha_k, turn, threads),
          MixOne(s, v.contiguous(), alpha_v, {}, threads)};
}

at::Tensor Collapse(const at::Tensor& a, const at::Tensor& collapse, int64_t pseudo,
                    const std::optional<at::Tensor>& v) {
  const CollapseShape s = CheckCollapse(at::kFloat, a, collapse, pseudo, v);
  kernels::ThreadPool threads = Threads(a);
  // From virtual tokens to [token][h][j].
  const auto by_head = [&](const at::Tensor& x) {
    return x.reshape({s.batch * s.tokens, s.pseudo, s.heads, s.d}).transpose(1, 2).contiguous();
  };
  const at::Tensor rows = by_head(a), values = v.has_value() ? by_head(*v) : at::Tensor(), r = collapse.contiguous();
  const at::Tensor out = at::empty({s.batch, s.tokens, s.heads, s.d}, a.options());
  kernels::IhaCollapse({Size(s.batch * s.tokens), Size(s.heads), Size(s.pseudo), Size(s.d), s.global},
                       r.const_data_ptr<float>(), rows.const_data_ptr<float>(),
                       v.has_value() ? values.const_data_ptr<float>() : nullptr, out.mutable_data_ptr<float>(),
                       threads);
  return out;
}

at::Tensor Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::optional<double> scale,
                     int64_t pseudo, int64_t window, bool token_causal, bool token_window) {
  const AttentionShape s = CheckAttention(at::kFloat, "attention", q, k, v, scale, pseudo, window);
  CheckDim("attention", std::max(s.d, s.d_v), kernels::kMaxHeadDim);
  kernels::ThreadPool threads = Threads(q);
  const kernels::AttentionGpuMask mask{.pseudo = static_cast<uint32_t>(pseudo),
                                       .token_causal = token_causal,
                                       .token_window = token_window,
                                       .window = s.window};
  const at::Tensor queries = q.contiguous(), keys = k.contiguous(), values = v.contiguous();
  const at::Tensor out = at::empty({s.batch, s.rows, s.heads, s.d_v}, q.options());
  for (int64_t b = 0; b < s.batch; b++) {
    const Cache cache(s, keys[b].const_data_ptr<float>(), values[b].const_data_ptr<float>());
    const float* const query = queries[b].const_data_ptr<float>();
    float* const result = out[b].mutable_data_ptr<float>();
    std::vector<std::vector<kernels::AttentionRow>> rows(Size(s.kv_heads));
    for (int64_t h = 0; h < s.heads; h++) {
      for (int64_t t = 0; t < s.rows; t++) {
        const kernels::VisibleKeys seen = kernels::VisibleTo(mask, static_cast<uint32_t>(s.keys - s.rows + t));
        rows[Size(h * s.kv_heads / s.heads)].push_back({.q = query + (t * s.heads + h) * s.d,
                                                        .out = result + (t * s.heads + h) * s.d_v,
                                                        .first = seen.first,
                                                        .last = seen.last});
      }
    }
    const size_t shared = cache.layout().keys;
    std::vector<kernels::AttentionGroup> groups;
    for (size_t g = 0; g < rows.size(); g++) {
      groups.push_back({.blocks = cache.blocks(),
                        .head_offset = g / shared * cache.layout().bytes(),
                        .rows = rows[g],
                        .key = g % shared});
    }
    kernels::Attention(cache.layout(), s.scale, groups, threads);
  }
  return out;
}

at::Tensor TalkingHeads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& pre,
                        const at::Tensor& post, std::optional<double> scale, int64_t window) {
  const AttentionShape s = CheckAttention(at::kFloat, "talking_heads", q, k, v, scale, 1, window);
  CheckTalking(s, q, pre, post);
  CheckDim("talking_heads", s.d, kernels::kMaxHeadDim);
  kernels::ThreadPool threads = Threads(q);
  const at::Tensor queries = q.contiguous(), keys = k.contiguous(), values = v.contiguous();
  const at::Tensor before = pre.contiguous(), after = post.contiguous();
  const at::Tensor out = at::empty({s.batch, s.rows, s.heads, s.d_v}, q.options());
  std::vector<uint32_t> positions(Size(s.rows));
  std::iota(positions.begin(), positions.end(), static_cast<uint32_t>(s.keys - s.rows));
  for (int64_t b = 0; b < s.batch; b++) {
    const Cache cache(s, keys[b].const_data_ptr<float>(), values[b].const_data_ptr<float>());
    const kernels::TalkingHeadsTokens tokens{.blocks = cache.blocks(),
                                             .positions = positions,
                                             .q = queries[b].const_data_ptr<float>(),
                                             .q_stride = Size(s.heads * s.d),
                                             .out = out[b].mutable_data_ptr<float>()};
    kernels::TalkingHeads({.layout = cache.layout(),
                           .heads = Size(s.heads),
                           .kv_heads = Size(s.kv_heads),
                           .scale = s.scale,
                           .window = s.window,
                           .pre = before.const_data_ptr<float>(),
                           .post = after.const_data_ptr<float>()},
                          {&tokens, 1}, threads);
  }
  return out;
}

at::Tensor Xsa(const at::Tensor& y, const at::Tensor& v) {
  CheckXsa(at::kFloat, y, v);
  CheckDim("xsa", y.size(3), kernels::kXsaMaxDim);
  kernels::ThreadPool threads = Threads(y);
  const at::Tensor out = y.clone(at::MemoryFormat::Contiguous), values = v.contiguous();
  const int64_t heads = y.size(2), groups = v.size(2), d = y.size(3);
  kernels::Xsa({.tokens = Size(y.size(0) * y.size(1)),
                .heads = Size(heads),
                .group = Size(heads / groups),
                .d = Size(d),
                .y_stride = Size(heads * d),
                .v_stride = Size(groups * d)},
               out.mutable_data_ptr<float>(), values.const_data_ptr<float>(), threads);
  return out;
}

at::Tensor Gate(const at::Tensor& y, const at::Tensor& g) {
  const bool elementwise = CheckGate(at::kFloat, y, g);
  kernels::ThreadPool threads = Threads(y);
  const at::Tensor out = y.clone(at::MemoryFormat::Contiguous), gates = g.contiguous();
  kernels::Gate({.tokens = Size(y.size(0) * y.size(1)),
                 .heads = Size(y.size(2)),
                 .d = Size(y.size(3)),
                 .elementwise = elementwise},
                out.mutable_data_ptr<float>(), gates.const_data_ptr<float>(), threads);
  return out;
}

at::Tensor DiffGated(const at::Tensor& a, const at::Tensor& logits) {
  CheckDiffGated(at::kFloat, a, logits);
  kernels::ThreadPool threads = Threads(a);
  const at::Tensor rows = a.contiguous(), l = logits.contiguous();
  const at::Tensor out = at::empty({a.size(0), a.size(1), a.size(2) / 2, a.size(3)}, a.options());
  kernels::DiffGated({Size(a.size(0) * a.size(1)), Size(a.size(2) / 2), Size(a.size(3))}, rows.const_data_ptr<float>(),
                     l.const_data_ptr<float>(), out.mutable_data_ptr<float>(), threads);
  return out;
}

at::Tensor DiffNormed(const at::Tensor& a, const at::Tensor& weight, double lambda, double eps, double scale) {
  CheckDiffNormed(at::kFloat, a, weight);
  kernels::ThreadPool threads = Threads(a);
  const at::Tensor rows = a.contiguous(), w = weight.contiguous();
  const at::Tensor out = at::empty({a.size(0), a.size(1), a.size(2) / 2, a.size(3)}, a.options());
  kernels::DiffNormed({Size(a.size(0) * a.size(1)), Size(a.size(2) / 2), Size(a.size(3))},
                      {.lambda = static_cast<float>(lambda),
                       .weight = w.const_data_ptr<float>(),
                       .eps = static_cast<float>(eps),
                       .scale = static_cast<float>(scale)},
                      rows.const_data_ptr<float>(), out.mutable_data_ptr<float>(), threads);
  return out;
}

}  // namespace iha::torch_ops::cpu
