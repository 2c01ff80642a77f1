// bench_ruler: how long rows of RULER take on one core, and the memory of it.
//
// Usage: bench_ruler TOKENIZER_DIR DATA_ROOT ROWS LENGTH...
// Official rows of the base template. One JSON object a length and task, and one for each length as a whole (start-up
// of the texts and the tokenizer included in the first); seconds are CPU seconds of this process.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>

#include "benchmarks/ruler/generate.h"
#include "benchmarks/ruler/tasks.h"
#include "benchmarks/ruler/texts.h"

namespace iha::benchmarks::ruler {
namespace {

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int64_t PeakMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Rows that came, and bytes of them.
int64_t MakeRows(const RulerOptions& options, int64_t rows) {
  const auto generator = Generator::Open(options);
  int64_t made = 0;
  const auto take = [&](const RulerRow& row) {
    made += ToJsonLine(row).empty() ? 0 : 1;
    return absl::OkStatus();
  };
  if (generator.ok()) (*generator)->Each(rows, take).IgnoreError();
  return made;
}

int Main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: bench_ruler TOKENIZER_DIR DATA_ROOT ROWS LENGTH...\n");
    return 2;
  }
  const double start = CpuSeconds();
  RulerOptions options;
  auto tokenizer = tokenizer::Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) {
    fmt::print(stderr, "bench_ruler: {}\n", std::string(tokenizer.status().message()));
    return 3;
  }
  options.tokenizer = *std::move(tokenizer);
  options.data_root = argv[2];
  options.texts = std::make_shared<Texts>(options.data_root);
  const int64_t rows = std::atoll(argv[3]);
  double before = start;
  for (int i = 4; i < argc; ++i) {
    options.length = std::atoll(argv[i]);
    for (const Task& task : Tasks()) {
      options.task = task.name;
      const double begin = CpuSeconds();
      const int64_t made = MakeRows(options, rows);
      fmt::print("{{\"length\": {}, \"task\": \"{}\", \"rows\": {}, \"seconds\": {:.3f}}}\n", options.length, task.name,
                 made, CpuSeconds() - begin);
    }
    fmt::print("{{\"length\": {}, \"all\": {:.3f}, \"peak_mib\": {}}}\n", options.length, CpuSeconds() - before,
               PeakMib());
    before = CpuSeconds();
  }
  return 0;
}

}  // namespace
}  // namespace iha::benchmarks::ruler

int main(int argc, char** argv) { return iha::benchmarks::ruler::Main(argc, argv); }
