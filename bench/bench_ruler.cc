// bench_ruler: how long rows of RULER take on one core, and the memory of it.
//
// Usage: bench_ruler TOKENIZER_DIR DATA_ROOT ROWS LENGTH...
// Official rows of the base template. One JSON object a length and task, and one for each length as a whole (start-up
// of the texts and the tokenizer included in the first); "cpu" are seconds of this process, "wall" of the clock. A task
// that ends before ROWS says where and why.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "benchmarks/ruler/generate.h"
#include "benchmarks/ruler/tasks.h"
#include "benchmarks/ruler/texts.h"

namespace iha::benchmarks::ruler {
namespace {

// Seconds since it was made.
class Stopwatch {
 public:
  double Cpu() const { return static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC; }
  double Wall() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count(); }

 private:
  std::clock_t cpu_ = std::clock();
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

int64_t PeakMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

struct Made {
  int64_t rows = 0;
  int64_t bytes = 0;
  std::string end;  // "" or why there are no more
};

Made MakeRows(const RulerOptions& options, int64_t rows) {
  Made made;
  const auto take = [&](const RulerRow& row) {
    ++made.rows;
    made.bytes += static_cast<int64_t>(ToJsonLine(row).size());
    return absl::OkStatus();
  };
  const auto generator = Generator::Open(options);
  const auto end = generator.ok() ? (*generator)->Each(rows, take) : generator.status();
  if (!end.ok()) {
    made.end = std::string(end.status().message());
  } else if (end->has_value()) {
    made.end = (*end)->cause;
  }
  return made;
}

int Main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: bench_ruler TOKENIZER_DIR DATA_ROOT ROWS LENGTH...\n");
    return 2;
  }
  Stopwatch of_length;
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
  for (int i = 4; i < argc; ++i) {
    options.length = std::atoll(argv[i]);
    for (const Task& task : Tasks()) {
      options.task = task.name;
      const Stopwatch of_task;
      const Made made = MakeRows(options, rows);
      fmt::print(
          "{{\"length\": {}, \"task\": \"{}\", \"rows\": {}, \"bytes\": {}, \"cpu\": {:.3f}, \"wall\": {:.3f}, "
          "\"end\": {}}}\n",
          options.length, task.name, made.rows, made.bytes, of_task.Cpu(), of_task.Wall(),
          nlohmann::json(made.end).dump());
    }
    fmt::print("{{\"length\": {}, \"cpu\": {:.3f}, \"wall\": {:.3f}, \"peak_mib\": {}}}\n", options.length,
               of_length.Cpu(), of_length.Wall(), PeakMib());
    of_length = Stopwatch();
  }
  return 0;
}

}  // namespace
}  // namespace iha::benchmarks::ruler

int main(int argc, char** argv) { return iha::benchmarks::ruler::Main(argc, argv); }
