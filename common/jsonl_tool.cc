#include "common/jsonl_tool.h"

#include <iostream>
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

constexpr std::string_view kPlace = "line";

// ParseUniqueJson's "line:1:COLUMN: ..." and "line: ..." as what a line's message goes on with.
absl::Status NotAnObject(const absl::Status& status) {
  std::string_view message{status.message().data(), status.message().size()};
  if (message.starts_with("line:1:")) return InvalidArgument("not a JSON object: column {}", message.substr(7));
  if (message.starts_with("line: ")) message.remove_prefix(6);
  return InvalidArgument("{}", message);
}

// The value of the next member of the valid JSON object `line`, as it is written; `pos` moves behind it.
std::string_view TakeMember(std::string_view line, size_t& pos) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  const auto string_end = [&](size_t i) {  // `i` at the opening mark
    for (++i; i < line.size() && line[i] != '"'; ++i) i += line[i] == '\\' ? 1 : 0;
    return i + 1;
  };
  while (pos < line.size() && line[pos] != '"') ++pos;
  pos = string_end(pos);
  while (pos < line.size() && line[pos] != ':') ++pos;
  size_t begin = pos + 1;
  while (begin < line.size() && blank(line[begin])) ++begin;
  size_t end = begin;
  for (int depth = 0; end < line.size();) {
    const char c = line[end];
    if (depth == 0 && (c == ',' || c == '}')) break;
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    end = c == '"' ? string_end(end) : end + 1;
  }
  pos = end + 1;
  while (end > begin && blank(line[end - 1])) --end;
  return line.substr(begin, end - begin);
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
  absl::StatusOr<Json> parsed = ParseUniqueJson<Json>(line, kPlace);
  if (!parsed.ok()) return NotAnObject(parsed.status());
  if (!parsed->is_object()) return InvalidArgument("not a JSON object: found {}", parsed->type_name());
  input = *std::move(parsed);
  output = Json::object();
  size_t pos = line.find('{') + 1;
  for (const auto& [key, value] : input.items()) {
    const std::string_view written = TakeMember(line, pos);
    const bool consumed = std::find(consumes.begin(), consumes.end(), key) != consumes.end();
    if (!consumed) output[key] = Json::binary(Json::binary_t::container_type(written.begin(), written.end()));
  }
  return absl::OkStatus();
}

bool IsBlankLine(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::string JsonLine(const Json& value) {
  const auto dump = [](const Json& v) { return v.dump(-1, ' ', false, Json::error_handler_t::replace); };
  if (!value.is_object()) return dump(value) + "\n";
  std::string line = "{";
  for (const auto& [key, field] : value.items()) {
    if (line.size() > 1) line += ',';
    line += dump(Json(key)) + ":";
    if (field.is_binary()) {
      line.append(field.get_binary().begin(), field.get_binary().end());
    } else {
      line += dump(field);
    }
  }
  return line + "}\n";
}

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
    const std::optional<int32_t> token = JsonInteger<int32_t>(id);
    if (token.value_or(-1) < 0) {
      return InvalidArgument("field \"{}\"[{}]: found {}; expected a token id", key, value.size(), id.dump());
    }
    value.push_back(*token);
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
