// Every benchmark there is: an explicit list, so that linking decides nothing.
#include <algorithm>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/graders.h"
#include "benchmarks/own/choice.h"
#include "benchmarks/own/jsonl.h"
#include "benchmarks/reasoning/gsm8k.h"
#include "benchmarks/reasoning/humaneval.h"
#include "benchmarks/reasoning/math500.h"
#include "benchmarks/reasoning/mbpp.h"
#include "common/errors.h"
#include "common/nearest.h"

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
  all.push_back(JsonlInfo(std::string(kJsonlPrefix) + "FILE"));
  all.push_back(ChoiceInfo(std::string(kChoicePrefix) + "FILE"));
  return all;
}

absl::StatusOr<BenchmarkInfo> FindBenchmark(const std::string& name) {
  if (name.starts_with(kJsonlPrefix)) return JsonlInfo(name);
  if (name.starts_with(kChoicePrefix)) return ChoiceInfo(name);
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
  for (const Family& family : Families()) {
    for (const BenchmarkInfo& info : family.infos) {
      if (info.name == ref.name) return family.open(ref, data_root, std::move(graders));
    }
  }
  return FindBenchmark(ref.name).status();
}

}  // namespace iha::benchmarks
