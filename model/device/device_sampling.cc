#include "model/device/device_sampling.h"

#include <algorithm>
#include <vector>

#include "common/status_macros.h"
#include "kernels/logits/sample_gpu.h"

namespace iha::model {
namespace {

// The rules of all rows, as the kernel reads them.
struct Rules {
  std::vector<float> temperature;
  std::vector<uint32_t> top_k;
  std::vector<double> top_p, uniform;
  std::vector<int32_t> ids;
  std::vector<uint32_t> id_begin = {0};
};

// Rows that nobody draws from are taken at temperature 0, which is the least work.
Rules RulesOf(std::span<const RowDraw> draws) {
  Rules all;
  for (const RowDraw& row : draws) {
    const DrawRules rules = row.draw ? row.rules : DrawRules();
    all.temperature.push_back(static_cast<float>(rules.temperature));
    all.top_k.push_back(static_cast<uint32_t>(std::max(rules.top_k, 0)));
    all.top_p.push_back(rules.top_p);
    all.uniform.push_back(row.uniform);
    all.ids.insert(all.ids.end(), rules.allowed.begin(), rules.allowed.end());
    all.id_begin.push_back(static_cast<uint32_t>(all.ids.size()));
    all.ids.insert(all.ids.end(), rules.forbidden.begin(), rules.forbidden.end());
    all.ids.insert(all.ids.end(), rules.also_forbidden.begin(), rules.also_forbidden.end());
    all.id_begin.push_back(static_cast<uint32_t>(all.ids.size()));
  }
  return all;
}

}  // namespace

absl::Status DrawOnDevice(DeviceRuntime& runtime, const DeviceLogits& logits, std::span<const RowDraw> draws,
                          std::span<int32_t> tokens) {
  std::ranges::fill(tokens, kNoToken);
  if (std::ranges::none_of(draws, &RowDraw::draw)) return absl::OkStatus();
  const Rules rules = RulesOf(draws);
  IHA_ASSIGN_OR_RETURN(const auto temperature, DeviceArray<float>::Copy(runtime, rules.temperature, "temperatures"));
  IHA_ASSIGN_OR_RETURN(const auto top_k, DeviceArray<uint32_t>::Copy(runtime, rules.top_k, "top k"));
  IHA_ASSIGN_OR_RETURN(const auto top_p, DeviceArray<double>::Copy(runtime, rules.top_p, "top p"));
  IHA_ASSIGN_OR_RETURN(const auto uniform, DeviceArray<double>::Copy(runtime, rules.uniform, "uniform numbers"));
  IHA_ASSIGN_OR_RETURN(const auto out, DeviceArray<int32_t>::Make(runtime, draws.size(), "tokens"));
  DeviceArray<int32_t> ids;
  DeviceArray<uint32_t> id_begin;
  DeviceArray<float> masked;
  if (!rules.ids.empty()) {
    IHA_ASSIGN_OR_RETURN(ids, DeviceArray<int32_t>::Copy(runtime, rules.ids, "masked ids"));
    IHA_ASSIGN_OR_RETURN(id_begin, DeviceArray<uint32_t>::Copy(runtime, rules.id_begin, "masked ids of rows"));
    IHA_ASSIGN_OR_RETURN(masked, DeviceArray<float>::Make(runtime, draws.size() * logits.n, "masked logits"));
  }
  IHA_RETURN_IF_ERROR(runtime.Check(kernels::SampleGpu({.logits = logits.data,
                                                        .tokens = out.data(),
                                                        .temperature = temperature.data(),
                                                        .top_k = top_k.data(),
                                                        .top_p = top_p.data(),
                                                        .uniform = uniform.data(),
                                                        .ids = ids.data(),
                                                        .id_begin = id_begin.data(),
                                                        .masked = masked.data(),
                                                        .rows = static_cast<uint32_t>(draws.size()),
                                                        .n = logits.n,
                                                        .ld = logits.ld},
                                                       runtime.stream()),
                                    "sample"));
  IHA_ASSIGN_OR_RETURN(const std::vector<int32_t> drawn, out.ToHost());
  for (size_t i = 0; i < draws.size(); i++) {
    if (draws[i].draw && drawn[i] >= 0) tokens[i] = drawn[i];
  }
  return absl::OkStatus();
}

absl::Status DownloadLogits(DeviceRuntime& runtime, const DeviceLogits& device, std::span<const int32_t> rows,
                            std::span<float> logits) {
  std::vector<float> run;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) end++;
    run.resize((end - i) * device.ld);
    const float* const from = device.data + static_cast<size_t>(rows[i]) * device.ld;
    IHA_RETURN_IF_ERROR(runtime.Download(run.data(), from, run.size() * sizeof(float)));
    for (const float* row = run.data(); i < end; i++, row += device.ld) {
      std::copy_n(row, device.n, logits.begin() + static_cast<std::ptrdiff_t>(i * device.n));
    }
  }
  return absl::OkStatus();
}

}  // namespace iha::model
