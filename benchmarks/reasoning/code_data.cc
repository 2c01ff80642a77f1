#include "benchmarks/reasoning/code_data.h"

#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "benchmarks/manifest.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, a gzip header

// The manifest has checked the bytes, so that a field that is missing would be our bug; it reads as "".
std::string Text(const Json& row, const char* key) {
  const auto it = row.find(key);
  return it != row.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<std::string> Texts(const Json& row, const char* key) {
  std::vector<std::string> texts;
  const auto it = row.find(key);
  if (it == row.end() || !it->is_array()) return texts;
  for (const Json& text : *it) texts.push_back(text.is_string() ? text.get<std::string>() : "");
  return texts;
}

absl::StatusOr<std::vector<Json>> Rows(const std::string& text, const char* file) {
  std::vector<Json> rows;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) {
      IHA_ASSIGN_OR_RETURN(Json row, ParseJson(std::string_view(text).substr(begin, end - begin), file));
      rows.push_back(std::move(row));
    }
    begin = end + 1;
  }
  return rows;
}

MbppProblem ProblemOf(const Json& row, MbppSet set) {
  MbppProblem problem{.task_id = JsonInteger(row.value("task_id", Json())).value_or(0),
                      .text = Text(row, set == MbppSet::kFull ? "text" : "prompt"),
                      .code = Text(row, "code"),
                      .setup = Text(row, "test_setup_code"),
                      .tests = Texts(row, "test_list")};
  if (set == MbppSet::kSanitized) problem.setup = fmt::format("{}", fmt::join(Texts(row, "test_imports"), "\n"));
  return problem;
}

}  // namespace

absl::StatusOr<std::string> Gunzip(std::string_view bytes, size_t max_bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return Internal("gzip: zlib can't be started");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int result = Z_OK;
  while (result == Z_OK && text.size() <= max_bytes) {
    constexpr size_t kStep = size_t{1} << 18;
    const size_t before = text.size();
    text.resize(before + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = kStep;
    result = inflate(&stream, Z_NO_FLUSH);
    text.resize(before + kStep - stream.avail_out);
    // Files that were put behind each other are a file.
    if (result == Z_STREAM_END && stream.avail_in > 0) result = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || text.size() > max_bytes) {
    return DataLoss("gzip: damaged, or longer than {} bytes", max_bytes);
  }
  return text;
}

absl::StatusOr<std::vector<HumanEvalProblem>> ReadHumanEval(const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const std::string packed, ReadDataFile(data_root, kHumanEvalFile));
  IHA_ASSIGN_OR_RETURN(const std::string text, Gunzip(packed, kMaxBytes));
  IHA_ASSIGN_OR_RETURN(const std::vector<Json> rows, Rows(text, kHumanEvalFile));
  std::vector<HumanEvalProblem> problems;
  for (const Json& row : rows) {
    problems.push_back({.task_id = Text(row, "task_id"),
                        .prompt = Text(row, "prompt"),
                        .entry_point = Text(row, "entry_point"),
                        .canonical_solution = Text(row, "canonical_solution"),
                        .test = Text(row, "test")});
  }
  return problems;
}

CodeTask TaskOf(const HumanEvalProblem& problem) {
  return {.id = problem.task_id,
          .setup = "",
          .tests = fmt::format("{}\ncheck({})", problem.test, problem.entry_point),
          .reference = problem.prompt + problem.canonical_solution,
          .entries = {problem.entry_point}};
}

absl::StatusOr<std::vector<MbppProblem>> ReadMbpp(const std::string& data_root, MbppSet set) {
  const char* file = set == MbppSet::kFull ? kMbppFile : kMbppSanitizedFile;
  IHA_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(data_root, file));
  std::vector<MbppProblem> problems;
  if (set == MbppSet::kFull) {
    IHA_ASSIGN_OR_RETURN(const std::vector<Json> rows, Rows(text, file));
    for (const Json& row : rows) problems.push_back(ProblemOf(row, set));
    return problems;
  }
  IHA_ASSIGN_OR_RETURN(const Json rows, ParseJson(text, file));
  for (const Json& row : rows) problems.push_back(ProblemOf(row, set));
  return problems;
}

CodeTask TaskOf(const MbppProblem& problem) {
  return {.id = fmt::format("MBPP/{}", problem.task_id),
          .setup = problem.setup,
          .tests = fmt::format("{}", fmt::join(problem.tests, "\n")),
          .reference = problem.code,
          .entries = {}};
}

}  // namespace iha::benchmarks
