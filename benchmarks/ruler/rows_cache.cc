#include "benchmarks/ruler/rows_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/json.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

using Json = nlohmann::json;
constexpr int kFormat = 1;

// The bytes [begin, begin + size) of a file; nullopt: it has fewer.
std::optional<std::string> ReadPart(const UniqueFd& fd, int64_t begin, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin) + static_cast<off_t>(done));
    if (got <= 0) return std::nullopt;
    done += static_cast<size_t>(got);
  }
  return bytes;
}

// Whether a file begins with lines of `sizes`: it may have more.
bool HoldsLines(const UniqueFd& fd, const std::vector<int64_t>& sizes) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  int64_t left = info.st_size;
  for (const int64_t size : sizes) {
    if (size < 0 || size >= left) return false;
    left -= size + 1;
  }
  return true;
}

// Those of an array that holds nothing else.
std::optional<std::vector<int64_t>> WholeNumbers(const Json& array) {
  std::vector<int64_t> numbers;
  for (const Json& json : array) {
    const std::optional<int64_t> number = JsonInteger(json);
    if (!number.has_value()) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<RowsEnd> ParseEnd(const Json& json) {
  const std::optional<int64_t> row = JsonInteger(json.at("row"));
  const std::string kind = json.at("kind");
  for (const EndKind known : {EndKind::kGeneratorDeadEnd, EndKind::kDataExhausted}) {
    if (row.has_value() && kind == EndName(known))
      return RowsEnd{.kind = known, .row = *row, .cause = json.at("cause")};
  }
  return std::nullopt;
}

}  // namespace

std::optional<RulerRow> ParseRow(std::string_view line, int64_t number) {
  const absl::StatusOr<Json> json = ParseJson(line, "row");
  if (!json.ok() || !json->is_object()) return std::nullopt;
  try {
    const std::optional<int64_t> index = JsonInteger(json->at("index")), length = JsonInteger(json->at("length")),
                                 with_chat = JsonInteger(json->at("length_w_model_temp")),
                                 answer_token = JsonInteger(json->value("token_position_answer", Json(-1)));
    if (!index.has_value() || !length.has_value() || !with_chat.has_value() || !answer_token.has_value()) {
      return std::nullopt;
    }
    return RulerRow{.number = number,
                    .index = *index,
                    .input = json->at("input"),
                    .outputs = json->at("outputs"),
                    .length = *length,
                    .length_w_model_temp = *with_chat,
                    .answer_prefix = json->at("answer_prefix"),
                    .token_position_answer = *answer_token};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

RowsCache::RowsCache(std::string folder, const Digest& digest)
    : folder_(std::move(folder)), stem_(folder_ + "/" + digest.Hex()) {}

std::optional<RowsCache::Index> RowsCache::ReadIndex() const {
  const absl::StatusOr<std::string> text = ReadRegularFile(stem_ + ".json");
  const absl::StatusOr<Json> file = text.ok() ? ParseJson(*text, stem_) : text.status();
  if (!file.ok()) return std::nullopt;
  try {
    const Json& rows = file->at("rows");
    if (file->at("format") != kFormat || file->at("sha256") != Sha256Of(rows.dump()).Hex()) return std::nullopt;
    std::optional<std::vector<int64_t>> sizes = WholeNumbers(rows.at("sizes"));
    if (!sizes.has_value()) return std::nullopt;
    Index index{.sizes = *std::move(sizes), .digests = rows.at("digests"), .end = std::nullopt};
    const size_t known = index.sizes.size();
    if (index.digests.size() != known) return std::nullopt;
    if (rows.at("end").is_null()) return index;
    index.end = ParseEnd(rows.at("end"));
    if (!index.end.has_value() || index.end->row != static_cast<int64_t>(known)) return std::nullopt;
    return index;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

absl::StatusOr<std::optional<RulerRows>> RowsCache::Read(int64_t first, int64_t count) const {
  const std::optional<Index> index = ReadIndex();
  if (!index.has_value()) return std::nullopt;
  const auto known = static_cast<int64_t>(index->sizes.size());
  const bool reaches_end = first + count > known;
  if (reaches_end && !index->end.has_value()) return std::nullopt;
  const UniqueFd fd(open((stem_ + ".jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || !HoldsLines(fd, index->sizes)) return std::nullopt;
  RulerRows result;
  if (reaches_end) result.end = index->end;
  int64_t begin = 0;
  for (int64_t row = 0; row < std::min(known, first + count); ++row) {
    const auto i = static_cast<size_t>(row);
    if (row >= first) {
      const std::optional<std::string> line = ReadPart(fd, begin, index->sizes[i]);
      if (!line.has_value() || Sha256Of(*line).Hex() != index->digests[i]) return std::nullopt;
      std::optional<RulerRow> parsed = ParseRow(*line, row);
      if (!parsed.has_value()) return std::nullopt;
      result.rows.push_back(*std::move(parsed));
    }
    begin += index->sizes[i] + 1;
  }
  return result;
}

absl::Status RowsCache::Store(const std::vector<std::string>& lines, const std::optional<RowsEnd>& end) const {
  IHA_RETURN_IF_ERROR(MakeFolders(folder_));
  Json rows = {{"sizes", Json::array()}, {"digests", Json::array()}, {"end", nullptr}};
  size_t bytes = 0;
  for (const std::string& line : lines) bytes += line.size() + 1;
  std::string body;
  body.reserve(bytes);
  for (const std::string& line : lines) {
    rows["sizes"].push_back(line.size());
    rows["digests"].push_back(Sha256Of(line).Hex());
    body += line;
    body += '\n';
  }
  if (end.has_value())
    rows["end"] = {{"kind", std::string(EndName(end->kind))}, {"row", end->row}, {"cause", end->cause}};
  IHA_RETURN_IF_ERROR(WriteFileAtomic(stem_ + ".jsonl", body));
  const Json file = {{"format", kFormat}, {"sha256", Sha256Of(rows.dump()).Hex()}, {"rows", rows}};
  return WriteFileAtomic(stem_ + ".json", file.dump() + "\n");
}

}  // namespace iha::benchmarks::ruler
