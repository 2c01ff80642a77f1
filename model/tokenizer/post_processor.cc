#include "model/tokenizer/post_processor.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/bpe.h"

namespace iha::tokenizer {
namespace {

absl::StatusOr<int32_t> ToId(const Json& value, const std::string& field) {
  const std::optional<int64_t> id = JsonInteger(value);
  if (!id.has_value() || *id < 0 || *id > kMaxTokenId) {
    return InvalidArgument("{}: found {}, expected an id from 0 to {}", field,
                           value.is_number() ? value.dump() : std::string(JsonKind(value)), kMaxTokenId);
  }
  return static_cast<int32_t>(*id);
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
  if (type == "RobertaProcessing") return ParseClsSep(value, path, Step::Kind::kRoberta);
  if (type == "BertProcessing") return ParseClsSep(value, path, Step::Kind::kBert);
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

absl::StatusOr<PostProcessor::Template> PostProcessor::ParsePieces(const Json& value, const char* key, int sources,
                                                                   const std::string& path) {
  IHA_ASSIGN_OR_RETURN(const Json* const list, GetArray(value, key, path));
  const Json* special = Find(value, "special_tokens");
  Template pieces;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string field = fmt::format("{}.{}[{}]", path, key, i);
    if (const Json* sequence = Find((*list)[i], "Sequence")) {
      IHA_ASSIGN_OR_RETURN(const std::string id, GetString(*sequence, "id", field + ".Sequence"));
      if (id != "A" && !(id == "B" && sources == 2)) {
        return InvalidArgument("{}.Sequence.id: found \"{}\", expected \"A\"{}", field, TerminalSafe(id, 40),
                               sources == 2 ? " or \"B\"" : "");
      }
      pieces.push_back({id == "A" ? 0 : 1, {}});
      continue;
    }
    const Json* token = Find((*list)[i], "SpecialToken");
    if (token == nullptr) return InvalidArgument("{}: expected an object with Sequence or SpecialToken", field);
    IHA_ASSIGN_OR_RETURN(const std::string id, GetString(*token, "id", field + ".SpecialToken"));
    const Json* entry = special == nullptr ? nullptr : Find(*special, id.c_str());
    if (entry == nullptr) {
      return InvalidArgument("{}.SpecialToken.id: \"{}\" is not in {}.special_tokens", field, TerminalSafe(id, 40),
                             path);
    }
    const std::string entry_field = fmt::format("{}.special_tokens[\"{}\"]", path, TerminalSafe(id, 40));
    IHA_ASSIGN_OR_RETURN(const Json* const ids, GetArray(*entry, "ids", entry_field));
    Piece piece;
    for (const Json& number : *ids) {
      IHA_ASSIGN_OR_RETURN(const int32_t token_id, ToId(number, entry_field + ".ids"));
      piece.ids.push_back(token_id);
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

absl::Status PostProcessor::ParseTemplate(const Json& value, const std::string& path) {
  Step step;
  IHA_ASSIGN_OR_RETURN(step.single, ParsePieces(value, "single", 1, path));
  if (parts_with_ == 2 || parts_without_ == 2) {
    IHA_ASSIGN_OR_RETURN(step.pair, ParsePieces(value, "pair", 2, path));
  }
  for (size_t* parts : {&parts_with_, &parts_without_}) {
    if (*parts != 1 && *parts != 2) {
      return InvalidArgument("{}: a template after {} parts, expected one or two (the processors before it leave them)",
                             path, *parts);
    }
    const Template& pieces = *parts == 1 ? step.single : step.pair;
    const auto texts = std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return p.source >= 0; });
    *parts = parts == &parts_with_ ? pieces.size() : static_cast<size_t>(texts);
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status PostProcessor::ParseClsSep(const Json& value, const std::string& path, Step::Kind kind) {
  const auto id_of = [&](const char* key) -> absl::StatusOr<int32_t> {
    IHA_ASSIGN_OR_RETURN(const Json* const pair, GetArray(value, key, path));
    if (pair->size() != 2) return InvalidArgument("{}: expected [token, id]", FieldPath(path, key));
    return ToId((*pair)[1], FieldPath(path, key));
  };
  Step step;
  step.kind = kind;
  IHA_ASSIGN_OR_RETURN(step.cls, id_of("cls"));
  IHA_ASSIGN_OR_RETURN(step.sep, id_of("sep"));
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

void PostProcessor::Run(const Step& step, bool add_special, Parts* parts) {
  if (step.kind == Step::Kind::kTemplate) {
    Parts out;
    for (const Piece& piece : parts->size() == 1 ? step.single : step.pair) {
      if (piece.source >= 0) {
        out.push_back((*parts)[static_cast<size_t>(piece.source)]);
      } else if (add_special) {
        out.push_back(piece.ids);
      }
    }
    *parts = std::move(out);
    return;
  }
  if (!add_special) return;
  for (size_t i = 0; i < parts->size(); ++i) {
    std::vector<int32_t>& ids = (*parts)[i];
    // After the first part BERT puts the end token only, RoBERTa one on both sides.
    if (i == 0) {
      ids.insert(ids.begin(), step.cls);
    } else if (step.kind == Step::Kind::kRoberta) {
      ids.insert(ids.begin(), step.sep);
    }
    ids.push_back(step.sep);
  }
}

std::vector<int32_t> PostProcessor::Apply(std::vector<int32_t> ids, bool add_special) const {
  if (steps_.empty()) return ids;
  Parts parts;
  parts.push_back(std::move(ids));
  for (const Step& step : steps_) Run(step, add_special, &parts);
  if (parts.size() == 1) return std::move(parts[0]);
  std::vector<int32_t> joined;
  for (const std::vector<int32_t>& part : parts) joined.insert(joined.end(), part.begin(), part.end());
  return joined;
}

}  // namespace iha::tokenizer
