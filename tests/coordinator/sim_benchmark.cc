#include "tests/coordinator/sim_benchmark.h"

#include <charconv>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

using benchmarks::Benchmark;
using benchmarks::BenchmarkInfo;

class SimBenchmark final : public Benchmark {
 public:
  SimBenchmark(int64_t items, BenchmarkRef ref, const SimBenchmarkOptions& options)
      : items_(items), ref_(std::move(ref)), data_(options.data), own_(options.answers_of_their_own) {
    info_.name = "sim";
    info_.version = "sim/1";
    info_.grader_version = options.grader_version;
    info_.metrics = {{"sim.exact", "text equals the answer"},
                     {"sim.any", "text is not empty"},
                     {"sim.word", "as sim.any, said to need another process", false}};
    info_.default_metrics = {"sim.exact"};
  }
  const BenchmarkInfo& info() const override { return info_; }
  const BenchmarkRef& ref() const override { return ref_; }
  int64_t size() const override { return items_; }
  std::string ItemId(int64_t index) const override { return fmt::format("sim-{}", index); }
  benchmarks::Prompt Render(int64_t index) const override {
    return {.text = fmt::format("item {:04}", index), .messages = {}, .stops = {}};
  }
  std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                              const std::vector<benchmarks::MetricInfo>& metrics) const override {
    std::vector<std::vector<SampleGrade>> grades;
    for (const std::string& text : texts) {
      grades.emplace_back();
      for (const benchmarks::MetricInfo& metric : metrics) {
        const bool right = metric.name == "sim.exact" ? text == Gold(index) : !text.empty();
        grades.back().push_back(GradeOf(metric.name, text, right));
        if (own_) grades.back().back().extracted += fmt::format("#{}", grades.size());
      }
    }
    return grades;
  }
  bool CanBeGrade(const std::string& text, const SampleGrade& grade) const override { return grade.extracted == text; }
  std::string Gold(int64_t index) const override { return fmt::format("ans{}", index); }
  Digest data_digest() const override { return Sha256Of("sim data " + data_); }

 private:
  static SampleGrade GradeOf(const std::string& metric, const std::string& text, bool right) {
    SampleGrade grade;
    grade.metric = metric;
    grade.extracted = text;
    grade.valid = !text.empty();
    grade.score = {right ? 1 : 0, 1};
    grade.reason = right ? "equal" : "differs";
    return grade;
  }
  const int64_t items_;
  const BenchmarkRef ref_;
  const std::string data_;
  const bool own_;
  BenchmarkInfo info_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenSimBenchmark(const BenchmarkRef& ref,
                                                                  const SimBenchmarkOptions& options) {
  if (ref.name != "sim") return NotFound("benchmark \"{}\": unknown; the only one here is sim", ref.name);
  BenchmarkRef full = ref;
  full.options.try_emplace("items", "8");
  const std::string& text = full.options["items"];
  int64_t items = 0;
  std::from_chars(text.data(), text.data() + text.size(), items);
  if (items < 1 || full.options.size() != 1) return InvalidArgument("sim: its only option is items, at least 1");
  return std::make_unique<const SimBenchmark>(items, std::move(full), options);
}

BenchmarkOpener SimOpener(const SimBenchmarkOptions& options) {
  return [options](const BenchmarkRef& ref) { return OpenSimBenchmark(ref, options); };
}

SweepSpec SimSweep(int64_t items, int32_t k, int64_t shard_items) {
  SweepSpec spec;
  spec.models = {{.name = "m", .weights_digest = ""}};
  SweepEntry entry;
  entry.benchmark = {.name = "sim", .options = {{"items", fmt::format("{}", items)}}};
  entry.sampling.samples = k;
  entry.sampling.max_new_tokens = 16;
  spec.entries = {entry};
  spec.numerics.backend = "fake";
  spec.shard_tokens = shard_items * EstimateTokens({.text = "item 0000", .messages = {}, .stops = {}}, entry.sampling);
  return spec;
}

}  // namespace iha::coordinator
