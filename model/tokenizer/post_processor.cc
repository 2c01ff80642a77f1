#include "model/tokenizer/post_processor.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/bpe.h"

namespace iha::tokenizer {
namespace {

constexpr int32_t kText = -1;

absl::StatusOr<int32_t> ToId(const Json& value, const std::string& field) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxTokenId)) {
    return InvalidArgument("{}: found {}, expected an id from 0 to {}", field,
                           value.is_number() ? value.dump() : std::string(JsonKind(value)), kMaxTokenId);
  }
  return value.get<int32_t>();
}

}  // namespace

absl::StatusOr<PostProcessor> PostProcessor::Parse(const Json& value, const std::string& path) {
  PostProcessor processor;
  if (!value.is_null()) IHA_RETURN_IF_ERROR(processor.ParseAt(value, path, 0));
  return processor;
}

absl::Status PostProcessor::ParseAt(const Json& value, const std::string& path, int depth) {
  if (depth > kMaxNesting) return TooDeep(path);
  IHA_RETURN_IF_ERROR(ExpectObject(value, path));
  IHA_ASSIGN_OR_RETURN(const std::string type, GetString(value, "type", path));
  if (type == "ByteLevel") return absl::OkStatus();  // moves offsets only
  if (type == "TemplateProcessing") return ParseTemplate(value, path);
  if (type == "RobertaProcessing" || type == "BertProcessing") return ParseClsSep(value, path);
  if (type == "Sequence") {
    IHA_ASSIGN_OR_RETURN(const Json* const list, GetArray(value, "processors", path));
    for (size_t i = 0; i < list->size(); ++i) {
      IHA_RETURN_IF_ERROR(ParseAt((*list)[i], fmt::format("{}.processors[{}]", path, i), depth + 1));
    }
    return absl::OkStatus();
  }
  return Unsupported(path + ".type", type,
                     {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"});
}

absl::Status PostProcessor::ParseTemplate(const Json& value, const std::string& path) {
  IHA_ASSIGN_OR_RETURN(const Json* const single, GetArray(value, "single", path));
  const Json* special = Find(value, "special_tokens");
  Template ids;
  for (size_t i = 0; i < single->size(); ++i) {
    const Json& piece = (*single)[i];
    const std::string field = fmt::format("{}.single[{}]", path, i);
    if (const Json* sequence = Find(piece, "Sequence")) {
      IHA_ASSIGN_OR_RETURN(const std::string id, GetString(*sequence, "id", field + ".Sequence"));
      if (id != "A")
        return InvalidArgument("{}.Sequence.id: found \"{}\", expected \"A\"", field, TerminalSafe(id, 40));
      ids.push_back(kText);
      continue;
    }
    const Json* token = Find(piece, "SpecialToken");
    if (token == nullptr) return InvalidArgument("{}: expected an object with Sequence or SpecialToken", field);
    IHA_ASSIGN_OR_RETURN(const std::string id, GetString(*token, "id", field + ".SpecialToken"));
    const Json* entry = special == nullptr ? nullptr : Find(*special, id.c_str());
    if (entry == nullptr) {
      return InvalidArgument("{}.SpecialToken.id: \"{}\" is not in {}.special_tokens", field, TerminalSafe(id, 40),
                             path);
    }
    const std::string entry_field = fmt::format("{}.special_tokens[\"{}\"]", path, TerminalSafe(id, 40));
    IHA_ASSIGN_OR_RETURN(const Json* const list, GetArray(*entry, "ids", entry_field));
    for (const Json& number : *list) {
      IHA_ASSIGN_OR_RETURN(const int32_t token_id, ToId(number, entry_field + ".ids"));
      ids.push_back(token_id);
    }
  }
  templates_.push_back(std::move(ids));
  return absl::OkStatus();
}

absl::Status PostProcessor::ParseClsSep(const Json& value, const std::string& path) {
  const auto id_of = [&](const char* key) -> absl::StatusOr<int32_t> {
    IHA_ASSIGN_OR_RETURN(const Json* const pair, GetArray(value, key, path));
    if (pair->size() != 2) return InvalidArgument("{}: expected [token, id]", FieldPath(path, key));
    return ToId((*pair)[1], FieldPath(path, key));
  };
  IHA_ASSIGN_OR_RETURN(const int32_t cls, id_of("cls"));
  IHA_ASSIGN_OR_RETURN(const int32_t sep, id_of("sep"));
  templates_.push_back({cls, kText, sep});
  return absl::OkStatus();
}

std::vector<int32_t> PostProcessor::Apply(std::vector<int32_t> ids) const {
  for (const Template& pieces : templates_) {
    std::vector<int32_t> out;
    out.reserve(ids.size() + pieces.size());
    for (const int32_t piece : pieces) {
      if (piece == kText) {
        out.insert(out.end(), ids.begin(), ids.end());
      } else {
        out.push_back(piece);
      }
    }
    ids = std::move(out);
  }
  return ids;
}

}  // namespace iha::tokenizer
