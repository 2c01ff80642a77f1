// jsonl_tool.h: the loop of every line-in, line-out command (CLI.md): one JSON object in, one out, in order.
//
// Fields of an input line that the command does not consume are carried to its output line as they are written there:
// numbers keep their digits. A bad line is reported with its number on `errors` and the loop goes on. Blocking; thread:
// the caller's.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/file.h"
#include "nlohmann/json_fwd.hpp"

namespace iha {

// Fills `output` (extra keys already carried, consumed keys removed) from `input`. An error makes this line bad.
using JsonlStep = std::function<absl::Status(const nlohmann::ordered_json& input, nlohmann::ordered_json& output)>;

struct JsonlTool {
  std::string name;                   // prefix of messages: "iha-eval tokenize"
  std::vector<std::string> consumes;  // keys that are not carried over
  JsonlStep step;
};

// Number of bad lines, with one more where the input could not be read to its end. Blank lines are skipped. Ends early
// when `out` takes no more.
int64_t RunJsonlTool(const JsonlTool& tool, LineReader& in, std::ostream& out, std::ostream& errors);

// As above over a file or "-" (stdin), to stdout; the exit code: 0, or 3 when a line was bad or the file is unreadable.
int RunJsonlToolOnFile(const JsonlTool& tool, const std::string& path);

// The parts of that loop, for commands that work on several lines at once. Reads one line: `output` gets the keys that
// `consumes` does not name, each a binary value that holds its text. InvalidArgument: not a JSON object (with the
// column), a field that is there twice, a byte order mark, or nested deeper than kMaxJsonDepth.
absl::Status ReadJsonLine(std::string_view line, const std::vector<std::string>& consumes,
                          nlohmann::ordered_json& input, nlohmann::ordered_json& output);
bool IsBlankLine(std::string_view line);
// One line, newline included; binary values as the text that they hold; bytes that are not UTF-8 become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& value);

// Typed access for steps: InvalidArgument "field \"ids\": missing; expected an array of token ids".
absl::Status GetString(const nlohmann::ordered_json& object, const char* key, std::string& value);
absl::Status GetTokenIds(const nlohmann::ordered_json& object, const char* key, std::vector<int32_t>& value);
absl::Status GetStrings(const nlohmann::ordered_json& object, const char* key, std::vector<std::string>& value);

}  // namespace iha
