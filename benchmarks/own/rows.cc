#include "benchmarks/own/rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "common/errors.h"
#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;

// The line of each id.
using Ids = std::unordered_map<std::string, size_t>;

absl::Status ReadLine(std::string_view line, const std::string& where, size_t number, Ids& ids,
                      const std::vector<TemplatePart>& prompt, const RowReader& read) {
  const absl::StatusOr<Json> row = ParseUniqueJson<Json>(line, where);
  if (!row.ok()) {
    const std::string message(row.status().message());
    const std::string of_one_line = where + ":1:";  // the line is a text of its own to the parser
    if (!message.starts_with(of_one_line)) return DataLoss("{}", message);
    return DataLoss("{}:{}", where, message.substr(of_one_line.size()));
  }
  if (!row->is_object()) return DataLoss("{}: found {}, expected a JSON object", where, Shown(*row));
  std::string name = fmt::format("row/{}", ids.size());
  if (row->contains("id")) {
    const absl::StatusOr<std::string> id = PlainField(*row, "id");
    if (!id.ok()) return DataLoss("{}: {}", where, std::string(id.status().message()));
    name = TerminalSafe(*id, 200);
  }
  if (const auto [first, is_new] = ids.emplace(name, number); !is_new) {
    return DataLoss("{}: id \"{}\" is that of line {} too; expected a different one in each row", where, name,
                    first->second);
  }
  const absl::Status status = read(*row, prompt, name);
  if (!status.ok()) return DataLoss("{}: {}", where, std::string(status.message()));
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachRow(const std::string& path, std::string_view bytes, const BenchmarkRef& ref,
                        const RowReader& read) {
  const auto prompt = ParseTemplate(ref.options.at("prompt"));
  if (!prompt.ok()) return Annotate(prompt.status(), "option prompt");
  size_t number = 0;
  Ids ids;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    number++;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    IHA_RETURN_IF_ERROR(ReadLine(line, fmt::format("{}:{}", path, number), number, ids, *prompt, read));
  }
  if (ids.empty()) return DataLoss("{}: holds no row; expected one JSON object a line", path);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadRowsFile(const std::string& name, std::string_view prefix) {
  const std::string path = name.substr(prefix.size());
  if (path.empty()) return InvalidArgument("{}: names no file; expected {}FILE", name, prefix);
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (absl::IsInvalidArgument(bytes.status())) return DataLoss("{}", std::string(bytes.status().message()));
  return bytes;
}

}  // namespace iha::benchmarks
