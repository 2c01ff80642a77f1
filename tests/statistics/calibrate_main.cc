// The gate's calibration study as Markdown on stdout: calibrate_gate [RATES_FILE] [SCALE].
//
// RATES_FILE: real item rates, one number in [0, 1] a line ("-": none). SCALE multiplies the number of pairs (1: as
// docs/gate-calibration.md states them). Run by `./dev calibrate`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/statistics/calibration.h"

namespace iha::statistics {
namespace {

constexpr int kItems[] = {50, 164, 500, 1319};
constexpr int kSamples[] = {1, 5, 16};
constexpr double kShared[] = {0.0, 0.5, 0.9, 1.0};
constexpr double kLosses[] = {0.0, 0.5, 1.0, 2.0, 4.0};

struct Worst {
  double low = 1.0;
  double high = 0.0;
  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string Text() const { return fmt::format("{:.3f} – {:.3f}", low, high); }
};

int Pairs(int samples, double scale) { return static_cast<int>((samples == 1 ? 10000 : 1500) * scale); }

// One line: all correlations, the least and the most of each rate.
void PrintLine(const char* name, const std::vector<double>& rates, int items, int samples, double scale) {
  Worst alarm, false_pass, pass, fail[5];
  double margin = 0.0;
  for (const double shared : kShared) {
    for (size_t l = 0; l < 5; ++l) {
      const Setting setting{.items = items,
                            .samples = samples,
                            .shared = shared,
                            .loss = kLosses[l],
                            .rates = rates,
                            .pairs = Pairs(samples, scale),
                            .seed = static_cast<uint64_t>(items * 1000 + samples * 10) + l};
      const Rates result = Simulate(setting);
      fail[l].Add(result.fail);
      if (l == 0) alarm.Add(result.fail);
      if (l == 0) pass.Add(result.pass);
      if (l == 0) margin = std::max(margin, result.mean_margin);
      if (l == 2) false_pass.Add(result.pass);
    }
  }
  fmt::print("| {} | {} | {} | {:.2f} | {:.3f} | {:.3f} | {} | {} | {} | {} | {} |\n", name, samples, items,
             100 * margin, alarm.high, false_pass.high, pass.Text(), fail[1].Text(), fail[2].Text(), fail[3].Text(),
             fail[4].Text());
  std::fflush(stdout);
}

void PrintStudy(const std::vector<double>& real, double scale) {
  fmt::print(
      "| rates | k | items | margin | false alarms, most | false passes, most | unchanged passes | -m/2 fails | -m "
      "fails | -2m fails | -4m fails |\n");
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const int samples : kSamples) {
    for (const int items : kItems) PrintLine("mixture", {}, items, samples, scale);
    if (real.empty()) continue;
    for (const int items : kItems) PrintLine("real", real, items, samples, scale);
  }
  const int families = static_cast<int>(10000 * scale);
  for (const int items : {164, 1319}) {
    const FamilyRates rates =
        SimulateFamilies({.items = items, .samples = 1, .shared = 0.5, .rates = {}, .pairs = families, .seed = 5}, 4);
    fmt::print(
        "\nFour metrics, k = 1, {} items, {} families: any FAIL when none got worse {:.3f}; PASS over all when a fifth "
        "has lost its margin {:.3f}\n",
        items, families, rates.any_fail, rates.all_pass);
  }
}

std::vector<double> ReadRates(const char* path) {
  std::vector<double> rates;
  std::ifstream file(path);
  for (double rate = 0.0; file >> rate;) rates.push_back(rate);
  return rates;
}

}  // namespace
}  // namespace iha::statistics

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "-";
  const double scale = argc > 2 ? std::atof(argv[2]) : 1.0;
  const auto rates = path == "-" ? std::vector<double>() : iha::statistics::ReadRates(path.c_str());
  if ((path != "-" && rates.empty()) || !(scale > 0)) {
    std::fprintf(stderr, "calibrate_gate: expected [RATES_FILE|-] [SCALE], a file of numbers and a number above 0\n");
    return 2;
  }
  iha::statistics::PrintStudy(rates, scale);
  return 0;
}
