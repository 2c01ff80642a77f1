// Reading a BPE model from the "model" block of tokenizer.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {

absl::StatusOr<std::unique_ptr<const Bpe>> Bpe::Parse(const Json& model, const std::string& path) {
  IHA_RETURN_IF_ERROR(ExpectObject(model, path));
  // Files from before the field existed are told by their merges.
  const bool untyped = Find(model, "type") == nullptr && Find(model, "merges") != nullptr;
  if (!untyped) {
    IHA_ASSIGN_OR_RETURN(const std::string type, GetString(model, "type", path));
    if (type != "BPE") return Unsupported(path + ".type", type, {"BPE"});
  }
  auto bpe = std::make_unique<Bpe>();
  IHA_RETURN_IF_ERROR(bpe->ReadVocab(model, path));
  IHA_RETURN_IF_ERROR(bpe->ReadOptions(model, path));
  IHA_RETURN_IF_ERROR(bpe->ReadMerges(model, path));
  bpe->IndexCharacters();
  const Json* unk = Find(model, "unk_token");
  if (unk != nullptr) {
    IHA_ASSIGN_OR_RETURN(const std::string unk_token, GetString(model, "unk_token", path));
    IHA_RETURN_IF_ERROR(bpe->CheckUnknown(unk_token, path));
  }
  return std::unique_ptr<const Bpe>(std::move(bpe));
}

absl::Status Bpe::ReadVocab(const Json& model, const std::string& path) {
  const std::string field = path + ".vocab";
  const Json* vocab = Find(model, "vocab");
  if (vocab == nullptr) return InvalidArgument("{}: missing (expected an object of tokens and ids)", field);
  IHA_RETURN_IF_ERROR(ExpectObject(*vocab, field));
  if (vocab->empty()) return InvalidArgument("{}: found no tokens, expected at least one", field);
  // Ids may have gaps, but what a table of them takes must be in proportion to the file.
  const int64_t limit = std::min(kMaxTokenId, 4 * static_cast<int64_t>(vocab->size()) + (1 << 20));
  int64_t largest = 0;
  for (const auto& [token, value] : vocab->items()) {
    const std::optional<int64_t> id = JsonInteger(value);
    if (!id.has_value() || *id < 0 || *id > limit) {
      return InvalidArgument("{}[\"{}\"]: found {}, expected an id from 0 to {} (of {} tokens)", field,
                             TerminalSafe(token, 40), value.is_number() ? value.dump() : std::string(JsonKind(value)),
                             limit, vocab->size());
    }
    largest = std::max(largest, *id);
  }
  texts_.resize(static_cast<size_t>(largest) + 1);
  used_.resize(texts_.size());
  vocab_.reserve(vocab->size());
  for (const auto& [token, value] : vocab->items()) {
    const auto id = value.get<size_t>();
    if (used_[id]) {
      return InvalidArgument("{}: id {} belongs to \"{}\" and to \"{}\", expected one token per id", field, id,
                             TerminalSafe(texts_[id], 40), TerminalSafe(token, 40));
    }
    used_[id] = true;
    texts_[id] = token;
    vocab_.emplace(texts_[id], static_cast<int32_t>(id));
  }
  return absl::OkStatus();
}

absl::Status Bpe::ReadOptions(const Json& model, const std::string& path) {
  if (const Json* dropout = Find(model, "dropout")) {
    if (!dropout->is_number() || dropout->get<double>() != 0) {
      return InvalidArgument("{}.dropout: found {}, expected null or 0 (encoding must be deterministic)", path,
                             dropout->is_number() ? dropout->dump() : std::string(JsonKind(*dropout)));
    }
  }
  IHA_ASSIGN_OR_RETURN(prefix_, GetString(model, "continuing_subword_prefix", path, ""));
  IHA_ASSIGN_OR_RETURN(suffix_, GetString(model, "end_of_word_suffix", path, ""));
  IHA_ASSIGN_OR_RETURN(fuse_unk_, GetBool(model, "fuse_unk", path, false));
  IHA_ASSIGN_OR_RETURN(ignore_merges_, GetBool(model, "ignore_merges", path, false));
  IHA_ASSIGN_OR_RETURN(const bool byte_fallback, GetBool(model, "byte_fallback", path, false));
  if (byte_fallback) {
    for (int b = 0; b < 256; ++b) byte_ids_.push_back(TokenId(fmt::format("<0x{:02X}>", b)).value_or(-1));
  }
  return absl::OkStatus();
}

absl::Status Bpe::ReadMerges(const Json& model, const std::string& path) {
  IHA_ASSIGN_OR_RETURN(const Json* const merges, GetArray(model, "merges", path));
  merges_.reserve(merges->size());
  uint32_t rank = 0;
  for (size_t i = 0; i < merges->size(); ++i) {
    const Json& merge = (*merges)[i];
    const auto field = [&] { return fmt::format("{}.merges[{}]", path, i); };
    if (merge.is_string()) {  // the older form: "left right"
      const std::string_view text = merge.get_ref<const std::string&>();
      if (text.starts_with("#version")) continue;
      const size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
        return InvalidArgument("{}: found \"{}\", expected two tokens and one space", field(), TerminalSafe(text, 60));
      }
      IHA_RETURN_IF_ERROR(AddMerge(text.substr(0, space), text.substr(space + 1), rank++, field()));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      IHA_RETURN_IF_ERROR(
          AddMerge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), rank++, field()));
    } else {
      return InvalidArgument("{}: found {}, expected \"left right\" or [left, right]", field(), JsonKind(merge));
    }
  }
  return absl::OkStatus();
}

absl::Status Bpe::AddMerge(std::string_view left, std::string_view right, uint32_t rank, const std::string& field) {
  const std::optional<int32_t> left_id = TokenId(left);
  const std::optional<int32_t> right_id = TokenId(right);
  if (!left_id.has_value() || !right_id.has_value()) {
    return InvalidArgument("{}: \"{}\" is not in the vocabulary", field,
                           TerminalSafe(left_id.has_value() ? right : left, 60));
  }
  if (right.size() < prefix_.size()) {
    return InvalidArgument("{}: \"{}\" is shorter than continuing_subword_prefix", field, TerminalSafe(right, 60));
  }
  const std::string joined = std::string(left) + std::string(right.substr(prefix_.size()));
  const std::optional<int32_t> id = TokenId(joined);
  if (!id.has_value()) {
    return InvalidArgument("{}: \"{}\", which it makes, is not in the vocabulary", field, TerminalSafe(joined, 60));
  }
  const uint64_t key = uint64_t{static_cast<uint32_t>(*left_id)} << 32 | static_cast<uint32_t>(*right_id);
  merges_[key] = {rank, *id};  // of equal pairs the last counts
  return absl::OkStatus();
}

void Bpe::IndexCharacters() {
  low_chars_.assign(0x400, -1);
  for (size_t id = 0; id < texts_.size(); ++id) {
    if (!used_[id] || texts_[id].empty()) continue;
    const CodePoint c = FirstChar(texts_[id]);
    if (c.length != texts_[id].size()) continue;
    if (c.value < low_chars_.size()) {
      low_chars_[c.value] = static_cast<int32_t>(id);
    } else {
      high_chars_[c.value] = static_cast<int32_t>(id);
    }
  }
}

// A named unknown token that the vocabulary lacks is harmless only where no character can be unknown.
absl::Status Bpe::CheckUnknown(const std::string& unk_token, const std::string& path) {
  unk_id_ = TokenId(unk_token);
  if (unk_id_.has_value()) return absl::OkStatus();
  if (!byte_ids_.empty() && std::all_of(byte_ids_.begin(), byte_ids_.end(), [](int32_t id) { return id >= 0; })) {
    return absl::OkStatus();
  }
  for (int b = 0; b < 256; ++b) {
    if (CharId(ByteToChar(static_cast<uint8_t>(b))) < 0) {
      return InvalidArgument("{}.unk_token: \"{}\" is not in the vocabulary", path, TerminalSafe(unk_token, 60));
    }
  }
  return absl::OkStatus();
}

}  // namespace iha::tokenizer
