#include "common/jsonl_tool.h"

#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Missing(const char* key, const char* expected, const Json& object) {
  const auto at = object.find(key);
  if (at == object.end()) return InvalidArgument("field \"{}\": missing; expected {}", key, expected);
  return InvalidArgument("field \"{}\": found {}; expected {}", key, at->type_name(), expected);
}

absl::Status RunLine(const JsonlTool& tool, const std::string& line, std::ostream& out) {
  Json input;
  Json output;
  IHA_RETURN_IF_ERROR(ReadJsonLine(line, tool.consumes, input, output));
  IHA_RETURN_IF_ERROR(tool.step(input, output));
  out << JsonLine(output);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadJsonLine(std::string_view line, const std::vector<std::string>& consumes, Json& input, Json& output) {
  IHA_RETURN_IF_ERROR(CheckJsonDepth(line));  // what is carried over is copied and printed by recursion
  input = Json::parse(line, nullptr, false);
  if (!input.is_object()) return InvalidArgument("not a JSON object");
  output = Json::object();
  for (const auto& [key, value] : input.items()) {
    const bool consumed = std::find(consumes.begin(), consumes.end(), key) != consumes.end();
    if (!consumed) output[key] = value;
  }
  return absl::OkStatus();
}

bool IsBlankLine(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::string JsonLine(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

int64_t RunJsonlTool(const JsonlTool& tool, LineReader& in, std::ostream& out, std::ostream& errors) {
  int64_t bad = 0;
  for (int64_t last = -1; last != in.line_number() && out;) {  // no progress = the input cannot be read any further
    last = in.line_number();
    const absl::StatusOr<std::optional<std::string>> line = in.Next();
    if (line.ok() && !line->has_value()) break;
    if (line.ok() && IsBlankLine(**line)) continue;
    const absl::Status status = line.ok() ? RunLine(tool, **line, out) : line.status();
    if (status.ok()) continue;
    bad++;
    const absl::string_view text = status.message();
    errors << tool.name << ": line " << in.line_number() << ": " << TerminalSafe({text.data(), text.size()}) << '\n';
  }
  out.flush();
  return bad;
}

int RunJsonlToolOnFile(const JsonlTool& tool, const std::string& path) {
  absl::StatusOr<LineReader> in = LineReader::Open(path);
  if (!in.ok()) {
    std::cerr << tool.name << ": " << TerminalSafe(std::string(in.status().message()))
              << "; expected a JSON Lines file or - for stdin\n";
    return kExitBadInput;
  }
  return RunJsonlTool(tool, *in, std::cout, std::cerr) == 0 ? kExitOk : kExitBadInput;
}

absl::Status GetString(const Json& object, const char* key, std::string& value) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_string()) return Missing(key, "a string", object);
  value = at->get<std::string>();
  return absl::OkStatus();
}

absl::Status GetTokenIds(const Json& object, const char* key, std::vector<int32_t>& value) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array()) return Missing(key, "an array of token ids", object);
  value.clear();
  for (const Json& id : *at) {
    const bool fits = id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int32_t>::max();
    if (!fits) return InvalidArgument("field \"{}\"[{}]: found {}; expected a token id", key, value.size(), id.dump());
    value.push_back(id.get<int32_t>());
  }
  return absl::OkStatus();
}

absl::Status GetStrings(const Json& object, const char* key, std::vector<std::string>& value) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array()) return Missing(key, "an array of strings", object);
  value.clear();
  for (const Json& text : *at) {
    if (!text.is_string()) return InvalidArgument("field \"{}\"[{}]: expected a string", key, value.size());
    value.push_back(text.get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace iha
