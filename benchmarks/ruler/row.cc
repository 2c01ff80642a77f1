#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "benchmarks/ruler/generate.h"

namespace iha::benchmarks::ruler {
namespace {

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string ToJsonLine(const RulerRow& row) {
  std::string outputs;
  for (const std::string& output : row.outputs) {
    if (!outputs.empty()) outputs += ", ";
    outputs += Quoted(output);
  }
  std::string line = fmt::format(
      R"({{"index": {}, "input": {}, "outputs": [{}], "length": {}, "length_w_model_temp": {}, "answer_prefix": {})",
      row.index, Quoted(row.input), outputs, row.length, row.length_w_model_temp, Quoted(row.answer_prefix));
  if (row.token_position_answer >= 0)
    line += fmt::format(R"(, "token_position_answer": {})", row.token_position_answer);
  return line + "}";
}

std::string_view EndName(EndKind kind) {
  return kind == EndKind::kGeneratorDeadEnd ? "generator_dead_end" : "data_exhausted";
}

}  // namespace iha::benchmarks::ruler
