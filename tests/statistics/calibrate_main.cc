// The gate's calibration study as Markdown on stdout: calibrate_gate [RATES_FILE] [SCALE].
//
// RATES_FILE: real item rates, one number in [0, 1] a line ("-": none). SCALE multiplies the number of pairs (1: as
// docs/gate-calibration.md states them). Run by `./dev calibrate`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/statistics/calibration.h"

namespace iha::statistics {
namespace {

constexpr int kItems[] = {50, 164, 500, 1319};
constexpr int kSamples[] = {1, 5, 16};
constexpr double kShared[] = {0.0, 0.5, 0.9, 1.0};
constexpr double kLosses[] = {0.0, 0.5, 1.0, 2.0, 4.0};

// The two claims, "did not get worse" and "lost the margin", need more pairs than the powers between and beyond them.
constexpr size_t kSame = 0;
constexpr size_t kLost = 2;
constexpr int kClaimPairs = 10000;
constexpr int kPowerPairs = 1000;
constexpr int kDraws = 199;        // of the bootstrap: alpha (kDraws + 1) is whole, so that the level is that of many
constexpr int kClaimedFrom = 164;  // items
// Of so many rates some lie two standard errors off by chance: one above them is measured anew, with so many times the
// pairs and random numbers of its own, which the choice of this rate says nothing about.
constexpr int kAgain = 4;
constexpr uint64_t kAgainSeed = uint64_t{1} << 32;

double StandardErrors(double rate, int pairs) { return (rate - 0.05) / std::sqrt(0.05 * 0.95 / pairs); }

struct Span {
  double low = 1.0;
  double high = 0.0;
  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string Text() const { return fmt::format("{:.3f} – {:.3f}", low, high); }
};

// All error rates of settings that the promise is about, in standard errors above alpha.
struct Claims {
  int rates = 0;
  int above = 0;  // by more than two
  double highest = 0.0;
  double highest_errors = -1e9;
  std::vector<std::string> again;  // what those above are with other random numbers

  void Add(const std::string& name, Setting setting, const Rates& measured) {
    const auto rate_of = [&setting](const Rates& of) { return setting.loss > 0 ? of.pass : of.fail; };
    const double rate = rate_of(measured), errors = StandardErrors(rate, setting.pairs);
    ++rates;
    highest = std::max(highest, rate);
    highest_errors = std::max(highest_errors, errors);
    if (errors <= 2.0) return;
    ++above;
    setting.pairs *= kAgain;
    setting.seed += kAgainSeed;
    const double other = rate_of(Simulate(setting));
    again.push_back(fmt::format(
        "{}, k = {}, {} items, shared {}: false {} {:.4f}; of {} other pairs {:.4f} ({:.1f} standard errors)", name,
        setting.samples, setting.items, setting.shared, setting.loss > 0 ? "passes" : "alarms", rate, setting.pairs,
        other, StandardErrors(other, setting.pairs)));
  }
};

// One line: all correlations, the least and the most of each rate.
void PrintLine(const char* name, const std::vector<double>& rates, int items, int samples, double scale,
               Claims& claims) {
  Span alarm, false_pass, pass, fail[5];
  double margin = 0.0;
  for (size_t s = 0; s < std::size(kShared); ++s) {
    for (size_t l = 0; l < std::size(kLosses); ++l) {
      const bool claim = l == kSame || l == kLost;
      const Setting setting{.items = items,
                            .samples = samples,
                            .shared = kShared[s],
                            .loss = kLosses[l],
                            .rates = rates,
                            .pairs = static_cast<int>((claim ? kClaimPairs : kPowerPairs) * scale),
                            .draws = kDraws,
                            .seed = static_cast<uint64_t>(items * 10000 + samples * 100) + s * 10 + l};
      const Rates result = Simulate(setting);
      fail[l].Add(result.fail);
      if (l == kSame) alarm.Add(result.fail);
      if (l == kSame) pass.Add(result.pass);
      if (l == kSame) margin = std::max(margin, result.mean_margin);
      if (l == kLost) false_pass.Add(result.pass);
      if (claim && items >= kClaimedFrom) claims.Add(name, setting, result);
    }
  }
  fmt::print("| {} | {} | {} | {:.2f} | {:.4f} | {:.4f} | {} | {} | {} | {} | {} |\n", name, samples, items,
             100 * margin, alarm.high, false_pass.high, pass.Text(), fail[1].Text(), fail[2].Text(), fail[3].Text(),
             fail[4].Text());
  std::fflush(stdout);
}

void PrintStudy(const std::vector<double>& real, double scale) {
  fmt::print(
      "| rates | k | items | margin | false alarms, most | false passes, most | unchanged passes | -m/2 fails | -m "
      "fails | -2m fails | -4m fails |\n");
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  Claims claims;
  for (const int samples : kSamples) {
    for (const int items : kItems) PrintLine("mixture", {}, items, samples, scale, claims);
    if (real.empty()) continue;
    for (const int items : kItems) PrintLine("real", real, items, samples, scale, claims);
  }
  fmt::print(
      "\n{} rates of false alarms and false passes at {} items and more: highest {:.4f} ({:.1f} standard errors above "
      "0.05), {} above two standard errors\n",
      claims.rates, kClaimedFrom, claims.highest, claims.highest_errors, claims.above);
  for (const std::string& line : claims.again) fmt::print("- {}\n", line);
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
