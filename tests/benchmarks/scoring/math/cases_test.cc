// The labelled cases of the field: shares of agreement that must hold.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "benchmarks/scoring/math/math_robust.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

struct Tally {
  int right = 0;
  int all = 0;
  std::string wrong;
  double share() const { return all == 0 ? 0 : static_cast<double>(right) / all; }
};

void Count(Tally& tally, bool label, const std::string& id, const std::string& gold, const std::string& text) {
  const MathVerdict verdict = JudgeMath(gold, text);
  ++tally.all;
  if (verdict.equal() == label) {
    ++tally.right;
  } else {
    tally.wrong += id + " " + NameOf(verdict.outcome) + " by " + verdict.rule + "\n";
  }
}

TEST(MathCases, AgreesWithTheLabelsOfEquivalence) {
  IHA_REQUIRE_CASES(root);
  std::ifstream file(root + "/math_equiv/cases.jsonl");
  std::map<std::string, Tally> kinds;
  std::string line;
  while (std::getline(file, line)) {
    const auto row = nlohmann::json::parse(line);
    if (row.value("conflict", false) || row.value("upstream_label_suspect", false)) continue;
    Count(kinds[row["kind"]], row["expected"], row["id"], row["gold"], row["pred"]);
  }
  EXPECT_GE(kinds["math"].all, 150);
  EXPECT_GE(kinds["math"].share(), 0.99) << kinds["math"].wrong;
  EXPECT_GE(kinds["multilingual"].share(), 0.95) << kinds["multilingual"].wrong;
  EXPECT_GE(kinds["letters"].share(), 0.95) << kinds["letters"].wrong;
}

std::string ReadGzip(const std::string& path) {
  std::string out;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return out;
  char buffer[1 << 16];
  for (int n = 0; (n = gzread(file, buffer, sizeof(buffer))) > 0;) out.append(buffer, static_cast<size_t>(n));
  gzclose(file);
  return out;
}

TEST(MathCases, AgreesWithTheLabelsOfModelOutputs) {
  IHA_REQUIRE_CASES(root);
  std::istringstream file(ReadGzip(root + "/math_outputs/labelled.jsonl.gz"));
  Tally tally;
  std::string line;
  while (std::getline(file, line)) {
    const auto row = nlohmann::json::parse(line);
    Count(tally, row["label"], row["id"], row["gold"], row["response"]);
  }
  EXPECT_GE(tally.all, 300);
  EXPECT_GE(tally.share(), 0.985) << tally.wrong;
}

}  // namespace
}  // namespace iha::scoring
