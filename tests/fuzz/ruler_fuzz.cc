// Any bytes as a spec of RULER, as a prediction with its references, and as the files of a rows cache.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/ruler/rows_cache.h"
#include "benchmarks/ruler/score.h"
#include "benchmarks/ruler/spec.h"
#include "benchmarks/scoring/ruler_means.h"
#include "common/file.h"
#include "common/json.h"
#include "common/jsonl_tool.h"
#include "common/text.h"

namespace {

namespace ruler = iha::benchmarks::ruler;
using Json = nlohmann::json;

void Require(bool holds) {
  if (!holds) std::abort();
}

bool IsOneLine(const absl::Status& status) {
  return !status.message().empty() && status.message().find('\n') == absl::string_view::npos;
}

// What is taken stands for cells that stand for themselves.
void CheckSpec(const std::string& text) {
  const std::string name = "ruler" + text;
  if (!ruler::IsRulerName(name)) return;
  const auto cells = ruler::CellNames(name);
  if (!cells.ok()) return Require(IsOneLine(cells.status()));
  Require(!cells->empty());
  for (const std::string& cell : *cells) {
    Require(iha::scoring::ParseRulerCell(cell).has_value());
    Require(*ruler::CellNames(cell) == std::vector<std::string>{cell});
  }
}

// A line of `score ruler`: refused in one line, or judged.
void CheckPrediction(const std::string& text) {
  nlohmann::ordered_json in, out;
  const absl::Status read = iha::ReadJsonLine(text, {}, in, out);
  if (!read.ok()) return Require(IsOneLine(read));
  std::string prediction;
  std::vector<std::string> references;
  for (const absl::Status& status :
       {iha::GetString(in, "prediction", prediction), iha::GetStrings(in, "outputs", references)}) {
    if (!status.ok()) return Require(IsOneLine(status));
  }
  const std::string clean = ruler::CleanPrediction(prediction);
  Require(ruler::CleanPrediction(clean) == clean);
  if (references.empty()) return;
  for (const ruler::Match match : {ruler::Match::kAll, ruler::Match::kPart}) {
    const iha::Score score = ruler::ScoreOf(match, ruler::FoundIn(references, prediction));
    Require(0 <= score.num && score.num <= score.den);
    // A prediction that holds all that is judged of it, and nothing else, is found in itself.
    Require(ruler::ScoreOf(match, ruler::FoundIn({clean}, prediction)) == iha::Score{1, 1});
    (void)ruler::OfficialPercent(std::vector<iha::Score>{score});
  }
}

void CheckRow(std::string_view line) {
  const auto row = ruler::ParseRow(line, 3);
  if (!row.has_value()) return;
  const auto again = ruler::ParseRow(ruler::ToJsonLine(*row), 3);
  Require(again.has_value() && *again == *row);
}

// Of this process, removed at its end.
class Folder {
 public:
  Folder() { Require(mkdtemp(path_.data()) != nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "ruler_fuzz_XXXXXX";
};

// The first line is the index of rows, made to fit its digest; what follows are the rows.
void CheckCache(const std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const auto rows = iha::ParseJson(text.substr(0, end), "fuzz");
  if (!rows.ok()) return;
  static const Folder folder;
  const iha::Digest digest = iha::Sha256Of("fuzz");
  const std::string stem = folder.path() + "/" + digest.Hex();
  const Json index = {{"format", 1}, {"sha256", iha::Sha256Of(rows->dump()).Hex()}, {"rows", *rows}};
  Require(iha::WriteFileAtomic(stem + ".json", index.dump()).ok());
  Require(iha::WriteFileAtomic(stem + ".jsonl", text.substr(std::min(end + 1, text.size()))).ok());
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {0, 9}, {1, 2}}) {
    const auto known = ruler::RowsCache(folder.path(), digest).Read(first, count);
    Require(known.ok());
    if (!known->has_value()) continue;
    const auto got = static_cast<int64_t>((*known)->rows.size());
    Require(got == count || (*known)->end.has_value());
    Require(!(*known)->end.has_value() || first + got <= std::max(first, (*known)->end->row));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckSpec(text);
  CheckPrediction(text);
  CheckRow(text);
  CheckCache(text);
  return 0;
}
