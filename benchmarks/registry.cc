// Every benchmark there is: an explicit list, so that linking decides nothing.
#include <algorithm>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/graders.h"
#include "benchmarks/options.h"
#include "benchmarks/own/choice.h"
#include "benchmarks/own/jsonl.h"
#include "benchmarks/reasoning/gsm8k.h"
#include "benchmarks/reasoning/humaneval.h"
#include "benchmarks/reasoning/math500.h"
#include "benchmarks/reasoning/mbpp.h"
#include "benchmarks/ruler/ruler.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using OpenFunction = absl::StatusOr<std::unique_ptr<const Benchmark>> (*)(const BenchmarkRef&, const std::string&,
                                                                          std::shared_ptr<Graders>);

struct Family {
  std::vector<BenchmarkInfo> infos;
  OpenFunction open;
};

std::vector<Family> Families() {
  return {{Gsm8kFamily(), OpenGsm8k},
          {Math500Family(), OpenMath500},
          {MbppFamily(), OpenMbpp},
          {HumanEvalFamily(), OpenHumanEval}};
}

}  // namespace

std::vector<BenchmarkInfo> ListBenchmarks() {
  std::vector<BenchmarkInfo> all;
  for (Family& family : Families()) std::move(family.infos.begin(), family.infos.end(), std::back_inserter(all));
  if (absl::StatusOr<BenchmarkInfo> ruler = ruler::RulerInfo("ruler"); ruler.ok()) all.push_back(*std::move(ruler));
  all.push_back(JsonlInfo(std::string(kJsonlPrefix) + "FILE"));
  all.push_back(ChoiceInfo(std::string(kChoicePrefix) + "FILE"));
  return all;
}

absl::StatusOr<BenchmarkInfo> FindBenchmark(const std::string& name) {
  if (name.starts_with(kJsonlPrefix)) return JsonlInfo(name);
  if (name.starts_with(kChoicePrefix)) return ChoiceInfo(name);
  if (ruler::IsRulerName(name)) return ruler::RulerInfo(name);
  std::vector<std::string> known;
  for (BenchmarkInfo& info : ListBenchmarks()) {
    if (info.name == name) return std::move(info);
    known.push_back(std::move(info.name));
  }
  return absl::NotFoundError(UnknownName("benchmark", name, known).message());
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenBenchmark(const BenchmarkRef& ref, const std::string& data_root,
                                                               std::shared_ptr<Graders> graders) {
  if (graders == nullptr) graders = std::make_shared<Graders>();
  if (ref.name.starts_with(kJsonlPrefix)) return OpenJsonl(ref, std::move(graders));
  if (ref.name.starts_with(kChoicePrefix)) return OpenChoice(ref);
  if (ruler::IsRulerName(ref.name)) return ruler::OpenRuler(ref, data_root);
  for (const Family& family : Families()) {
    for (const BenchmarkInfo& info : family.infos) {
      if (info.name == ref.name) return family.open(ref, data_root, std::move(graders));
    }
  }
  return FindBenchmark(ref.name).status();
}

absl::StatusOr<std::vector<BenchmarkRef>> ExpandBenchmark(const BenchmarkRef& ref) {
  if (!ruler::IsRulerName(ref.name)) return std::vector<BenchmarkRef>{ref};
  IHA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ruler::CellNames(ref.name));
  std::vector<BenchmarkRef> refs;
  for (const std::string& name : names) refs.push_back({.name = name, .options = ref.options});
  return refs;
}

absl::Status CheckContext(const BenchmarkRef& ref, const std::string& model, int64_t context_tokens) {
  const absl::StatusOr<BenchmarkInfo> info = FindBenchmark(ref.name);
  if (!info.ok()) return info.status();
  const auto allowed = ref.options.find(kAllowOverContextOption);
  if (info->item_tokens <= context_tokens || (allowed != ref.options.end() && allowed->second == "yes")) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "{}: items of {} tokens, {} has a context of {} (max_position_embeddings); ask for a shorter length, or add "
      "?allow_over_context to run it anyway",
      ref.name, info->item_tokens, model, context_tokens);
}

}  // namespace iha::benchmarks
