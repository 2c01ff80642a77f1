// RoPE metadata of a GGUF file.
#include <algorithm>
#include <cmath>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/gguf/import_parts.h"
#include "model/checkpoint/rope.h"

namespace iha::checkpoint {
namespace {

// Of all Llama 3.x checkpoints; a file holds the resulting divisors only.
constexpr double kLlama3LowFactor = 1.0, kLlama3HighFactor = 4.0;
constexpr int64_t kLlama3OriginalTokens = 8192;

// YaRN settings that change the function and that no config.json field takes over.
constexpr const char* kForeignYarnKeys[] = {"rope.scaling.attn_factor", "rope.scaling.yarn_log_multiplier",
                                            "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor"};

std::string Key(const GgufModel& model, std::string_view name) {
  return fmt::format("{}.{}", model.architecture->name, name);
}

absl::Status ReadYarn(const GgufFile& file, GgufModel* model) {
  for (const char* name : kForeignYarnKeys) {
    if (file.metadata().contains(Key(*model, name))) {
      return InvalidArgument("{}: {} is set, which is not supported; import the original checkpoint", file.path(),
                             Key(*model, name));
    }
  }
  IHA_ASSIGN_OR_RETURN(model->rope_original_tokens, file.Integer(Key(*model, "rope.scaling.original_context_length")));
  for (const auto& [name, value] : {std::pair{"rope.scaling.yarn_beta_fast", &model->yarn_beta_fast},
                                    std::pair{"rope.scaling.yarn_beta_slow", &model->yarn_beta_slow}}) {
    if (!file.metadata().contains(Key(*model, name))) continue;
    IHA_ASSIGN_OR_RETURN(*value, file.Real(Key(*model, name)));
  }
  return absl::OkStatus();
}

// Without a type llama.cpp takes a factor for a linear one; older files call it scale_linear. 0 is none.
absl::Status ReadUntypedFactor(const GgufFile& file, GgufModel* model) {
  const std::string key = Key(*model, "rope.scaling.factor"), old_key = Key(*model, "rope.scale_linear");
  IHA_ASSIGN_OR_RETURN(const float factor, file.Real(file.metadata().contains(key) ? key : old_key, 0.0F));
  if (factor == 0 || factor == 1) return absl::OkStatus();
  model->rope_scaling = GgufRopeScaling::kLinear;
  model->rope_factor = factor;
  return absl::OkStatus();
}

// The tensor must be what Llama 3's rule gives for some factor; anything else (LongRoPE) has no config.json form here.
absl::Status ReadRopeFactors(const GgufFile& file, GgufModel* model) {
  const auto found = file.tensors().find(kRopeFactors);
  if (found == file.tensors().end()) return absl::OkStatus();
  const GgufTensor& tensor = found->second;
  const auto refuse = [&file](std::string_view why) {
    return InvalidArgument("{}: tensor {} {}; import the original checkpoint", file.path(), kRopeFactors, why);
  };
  if (tensor.type.row == nullptr || tensor.type.row->block_elements != 1 || tensor.shape.size() != 1 ||
      tensor.shape[0] != model->head_dim / 2 || tensor.shape[0] == 0) {
    return refuse(fmt::format("has shape {} ({}), expected [{}] unquantised", ShapeText(tensor.shape),
                              NameOf(tensor.type), model->head_dim / 2));
  }
  if (!model->architecture->permuted_qk || model->rope_scaling != GgufRopeScaling::kNone) {
    return refuse("is there beside another RoPE scaling or architecture, which is not supported");
  }
  std::vector<float> divisors(static_cast<size_t>(tensor.shape[0]));
  Dequantise(tensor.type, tensor.bytes, divisors);
  const float factor = *std::max_element(divisors.begin(), divisors.end());
  if (!(factor >= 1)) return refuse(fmt::format("has a largest divisor of {}, expected at least 1", factor));
  RopeSpec plain{.theta = model->rope_theta}, scaled = plain;
  scaled.scaling = RopeScaling::kLlama3;
  scaled.factor = factor;
  scaled.low_freq_factor = kLlama3LowFactor;
  scaled.high_freq_factor = kLlama3HighFactor;
  scaled.original_max_positions = kLlama3OriginalTokens;
  const std::vector<double> before = InverseFrequencies(plain, model->head_dim);
  const std::vector<double> after = InverseFrequencies(scaled, model->head_dim);
  for (size_t i = 0; i < divisors.size(); ++i) {
    // The converter works in float32: a blended divisor is a few roundings (2^-24 each) away, times at most `factor`
    // where its blend cancels. 1e-4 is far below the distance to any other setting (context 4096: 2 times).
    if (!(std::abs(divisors[i] - before[i] / after[i]) <= 1e-4 * divisors[i])) {
      return refuse(fmt::format("is not Llama 3's scaling (factor {}, 1, 4, {}): divisor {} is {}, expected {}", factor,
                                kLlama3OriginalTokens, i, divisors[i], before[i] / after[i]));
    }
  }
  if (factor == 1) return absl::OkStatus();
  model->rope_scaling = GgufRopeScaling::kLlama3;
  model->rope_factor = factor;
  model->rope_original_tokens = kLlama3OriginalTokens;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGgufRope(const GgufFile& file, GgufModel* model) {
  IHA_ASSIGN_OR_RETURN(model->rope_theta, file.Real(Key(*model, "rope.freq_base"), model->architecture->rope_theta));
  if (!(model->rope_theta > 0)) {
    return InvalidArgument("{}: {} is {}, expected more than 0", file.path(), Key(*model, "rope.freq_base"),
                           model->rope_theta);
  }
  IHA_ASSIGN_OR_RETURN(const int64_t rotated, file.Integer(Key(*model, "rope.dimension_count"), model->head_dim));
  if (rotated != model->head_dim) {
    return InvalidArgument("{}: {} is {}, expected the head size {}", file.path(), Key(*model, "rope.dimension_count"),
                           rotated, model->head_dim);
  }
  IHA_ASSIGN_OR_RETURN(const std::string_view* scaling,
                       file.Optional<std::string_view>(Key(*model, "rope.scaling.type"), "string"));
  if (scaling == nullptr) {
    IHA_RETURN_IF_ERROR(ReadUntypedFactor(file, model));
  } else if (*scaling != "none") {
    if (*scaling != "linear" && *scaling != "yarn") {
      return InvalidArgument("{}: {} is {}, expected none, linear or yarn; import the original checkpoint", file.path(),
                             Key(*model, "rope.scaling.type"), TerminalSafe(*scaling, 200));
    }
    model->rope_scaling = *scaling == "linear" ? GgufRopeScaling::kLinear : GgufRopeScaling::kYarn;
    IHA_ASSIGN_OR_RETURN(model->rope_factor, file.Real(Key(*model, "rope.scaling.factor")));
    if (model->rope_scaling == GgufRopeScaling::kYarn) IHA_RETURN_IF_ERROR(ReadYarn(file, model));
  }
  return ReadRopeFactors(file, model);
}

}  // namespace iha::checkpoint
