// Two results of the paper on the kernels themselves (mixing, cache, attention, collapse): cases
// attention_oracles/theory.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/attention/attention.h"
#include "kernels/iha_collapse/iha_collapse.h"
#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "kernels/support/aligned.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/support/roots.h"
#include "tests/support/worst_error.h"

namespace iha::kernels {
namespace {

using nlohmann::json;

std::vector<float> Flat(const json& value) {
  std::vector<float> flat;
  if (value.is_number()) return {value.get<float>()};
  for (const json& element : value) {
    const std::vector<float> part = Flat(element);
    flat.insert(flat.end(), part.begin(), part.end());
  }
  return flat;
}

json Read(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

// One IHA attention over n tokens, from projections [n][heads][d] to [n][heads][d].
struct Iha {
  IhaShape shape;
  std::vector<float> alpha_q, alpha_k, alpha_v;  // [m][h][j]
  std::vector<float> collapse;
  bool global = false;
  bool causal = false;  // flat; else every virtual token sees every one
  double theta = 0;     // 0: no rotation
  float scale = 1.0f;

  std::vector<float> Run(size_t n, std::vector<float> q, std::vector<float> k, const std::vector<float>& v) const {
    SerialFor serial;
    const size_t heads = shape.heads, pseudo = shape.pseudo, d = shape.d, half = d / 2, rows = heads * pseudo;
    std::vector<double> frequency(half, 0.0);
    if (theta != 0) RopeFrequencies(theta, d, frequency.data());
    std::vector<float> cos(n * pseudo * half), sin(n * pseudo * half);
    FillRopeTable(frequency.data(), half, 0, n * pseudo, 1.0, cos.data(), sin.data());
    std::vector<uint32_t> positions(n), base(n);
    for (uint32_t t = 0; t < n; ++t) {
      positions[t] = t;
      base[t] = t * static_cast<uint32_t>(pseudo);
    }
    const RopeShape rope{n, heads, heads * d, d, d, RopePairing::kHalf};
    Rope(rope, q.data(), base.data(), cos.data(), sin.data(), serial);
    Rope(rope, k.data(), base.data(), cos.data(), sin.data(), serial);
    const auto mix = [&](std::vector<float>& packed, const std::vector<float>& alpha, const std::vector<float>& x,
                         bool rotate) {
      packed.resize(alpha.size());
      IhaPackAlpha(IhaAlphaLayout::kSourceTargetPseudo, heads, pseudo, alpha.data(), packed.data());
      return IhaMix{.alpha = packed.data(),
                    .source = {x.data(), StorageType::kF32, heads * d, d},
                    .cos = rotate ? cos.data() : nullptr,
                    .sin = rotate ? sin.data() : nullptr};
    };
    std::vector<float> packed[3], queries(n * rows * d), outputs(n * rows * d), out(n * heads * d);
    IhaMixRows(shape, mix(packed[0], alpha_q, q, true), n, queries.data(), serial);
    const KvLayout layout{StorageType::kF32, d, d};
    auto cache = MakeAligned<uint8_t>(rows * layout.bytes());
    std::vector<uint8_t*> slices(n, cache.get());  // n <= 64: one cache block
    IhaMixToCache(shape, mix(packed[1], alpha_k, k, true), mix(packed[2], alpha_v, v, false), layout, n, slices.data(),
                  positions.data(), serial);
    for (size_t h = 0; h < heads; ++h) {
      std::vector<const void*> table;
      for (size_t b = 0; b < pseudo; ++b) table.push_back(cache.get() + (h * pseudo + b) * layout.bytes());
      std::vector<AttentionRow> wanted;
      for (size_t t = 0; t < n; ++t) {
        for (size_t j = 0; j < pseudo; ++j) {
          const size_t at = ((t * heads + h) * pseudo + j) * d;
          wanted.push_back(
              {&queries[at], &outputs[at], 0, static_cast<uint32_t>(causal ? t * pseudo + j : n * pseudo - 1)});
        }
      }
      const AttentionGroup group{table.data(), 0, wanted};
      Attention(layout, scale, {&group, 1}, serial);
    }
    IhaCollapse({n, heads, pseudo, d, global}, collapse.data(), outputs.data(), nullptr, out.data(), serial);
    return out;
  }
};

// All cyclic shifts of x from ceil(sqrt N) heads, exactly: the winners tie, everyone else's weight is exp(-1e4) = 0.
TEST(IhaTheory, Cpm3WorkspaceNeedsOnlyTheRootOfTheHeads) {
  IHA_REQUIRE_CASES(cases);
  const json file = Read(cases + "/attention_oracles/theory/cpm3.json");
  ASSERT_FALSE(file.is_discarded());
  for (const json& c : file["cases"]) {
    const size_t heads = c["H"], pseudo = c["P"], n = c["tokens"].size(), width = c["tokens"][0].size();
    const std::vector<float> tokens = Flat(c["tokens"]);
    ASSERT_EQ(heads * pseudo, c["N_max"].get<size_t>());
    // Row vectors times W[m] [width][columns], into heads of d = n (values: P columns, then zeros).
    const auto project = [&](const char* name) {
      std::vector<float> out(n * heads * n, 0.0f);
      for (size_t m = 0; m < heads; ++m) {
        const std::vector<float> w = Flat(c[name][m]);
        const size_t columns = w.size() / width;
        for (size_t t = 0; t < n; ++t) {
          for (size_t i = 0; i < columns; ++i) {
            for (size_t k = 0; k < width; ++k)
              out[(t * heads + m) * n + i] += tokens[t * width + k] * w[k * columns + i];
          }
        }
      }
      return out;
    };
    Iha iha{.shape = {heads, pseudo, n},
            .alpha_q = Flat(c["alpha_q"]),
            .alpha_k = Flat(c["alpha_k"]),
            .alpha_v = Flat(c["alpha_v"]),
            .collapse = Flat(c["collapse_global"]),
            .global = true,
            .scale = 1e4f};
    const std::vector<float> out = iha.Run(n, project("W_Q"), project("W_K"), project("W_V"));
    std::vector<std::vector<float>> shifts(n);
    for (size_t t = 0; t < n; ++t) {
      for (size_t h = 0; h < heads; ++h) {
        for (size_t j = 0; j < pseudo; ++j) shifts[t].push_back(out[(t * heads + h) * n + j]);
      }
    }
    EXPECT_EQ(json(shifts), c["iha_output_rows"]);
    EXPECT_EQ(json(shifts), c["mha_output_rows"]);
    // What the workspace is for: row i alone answers CPM-3 for token i.
    for (const json& counts : c["cpm3_counts"]) {
      const int64_t g = counts["G"], modulus = counts["M"];
      for (size_t i = 0; i < n; ++i) {
        int64_t count = 0;
        for (const float first : shifts[i]) {
          for (const float second : shifts[i]) {
            const auto sum =
                static_cast<int64_t>(shifts[i][0]) + g * static_cast<int64_t>(first) + static_cast<int64_t>(second);
            count += sum % modulus == 0;
          }
        }
        EXPECT_EQ(count, counts["count"][i].get<int64_t>());
      }
    }
  }
}

// Equal tokens: MHA is linear in them, IHA is not.
TEST(IhaTheory, RepeatedTokensSeparateIhaFromMha) {
  IHA_REQUIRE_CASES(cases);
  const json file = Read(cases + "/attention_oracles/theory/repeated_token.json");
  ASSERT_FALSE(file.is_discarded());
  for (const json& c : file["cases"]) {
    const size_t n = c["N"], heads = c["H"], d = c["d"], hidden = c["D"];
    const std::vector<float> u = Flat(c["u"]), v = Flat(c["v"]);
    const float a = c["a"], b = c["b"];
    std::vector<float> mixed(hidden);
    for (size_t i = 0; i < hidden; ++i) mixed[i] = a * u[i] + b * v[i];
    const bool causal = c["mask"] != "none";
    Iha iha{.shape = {heads, c["P"], d},
            .alpha_q = Flat(c["alpha_q"]),
            .alpha_k = Flat(c["alpha_k"]),
            .alpha_v = Flat(c["alpha_v"]),
            .collapse = Flat(c["collapse_per_head"]),
            .causal = causal,
            .theta = c["rope"] == "none" ? 0.0 : 10000.0,
            .scale = 1.0f / std::sqrt(static_cast<float>(d))};
    Iha mha = iha;
    mha.shape.pseudo = 1;
    mha.collapse.assign(heads, 1.0f);
    std::vector<float> identity(heads * heads, 0.0f);
    for (size_t h = 0; h < heads; ++h) identity[h * heads + h] = 1.0f;
    mha.alpha_q = mha.alpha_k = mha.alpha_v = identity;

    const auto product = [](const std::vector<float>& w, const std::vector<float>& x) {
      std::vector<float> y(w.size() / x.size());
      for (size_t r = 0; r < y.size(); ++r) {
        for (size_t i = 0; i < x.size(); ++i) y[r] = std::fma(w[r * x.size() + i], x[i], y[r]);
      }
      return y;
    };
    const auto layer = [&](const Iha& attention, const std::vector<float>& x) {
      std::vector<float> qkv[3];
      const char* names[] = {"q_proj", "k_proj", "v_proj"};
      for (size_t i = 0; i < 3; ++i) {
        const std::vector<float> row = product(Flat(c[names[i]]), x);
        for (size_t t = 0; t < n; ++t) qkv[i].insert(qkv[i].end(), row.begin(), row.end());
      }
      const std::vector<float> heads_out = attention.Run(n, qkv[0], qkv[1], qkv[2]);
      std::vector<float> out;
      for (size_t t = 0; t < n; ++t) {
        const auto row = product(Flat(c["o_proj"]), {&heads_out[t * heads * d], &heads_out[t * heads * d] + heads * d});
        out.insert(out.end(), row.begin(), row.end());
      }
      return out;
    };
    // Values of some units through three products of at most eight terms and one softmax: some hundred roundings of
    // 2^-24 of at most 50.
    const double tolerance = 300 * 50 * 0x1p-24;
    for (const auto& [attention, name] : {std::pair<const Iha&, const char*>{iha, "iha"}, {mha, "mha"}}) {
      const json& expected = c["expected"][name];
      const std::vector<float> f_u = layer(attention, u), f_v = layer(attention, v), f_mixed = layer(attention, mixed);
      iha::testing::WorstError nonlinearity;
      for (const auto& [found, key] :
           {std::pair<const std::vector<float>&, const char*>{f_u, "f_u"}, {f_v, "f_v"}, {f_mixed, "f_au_bv"}}) {
        const std::vector<float> want = Flat(expected[key]);
        ASSERT_EQ(found.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], tolerance) << name << " " << key;
      }
      for (size_t i = 0; i < f_u.size(); ++i) {
        nonlinearity.Add(std::fabs(f_mixed[i] - a * f_u[i] - b * f_v[i]));
      }
      EXPECT_NEAR(nonlinearity.value(), expected["max_abs_nonlinearity"].get<double>(), 3 * tolerance) << name;
    }
  }
}

}  // namespace
}  // namespace iha::kernels
