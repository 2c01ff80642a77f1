#include "model/tokenizer/added_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

// Bounds the memory that a hostile list can claim.
constexpr size_t kMaxTrieNodes = size_t{1} << 22;

absl::StatusOr<AddedToken> ParseToken(const Json& value, const std::string& field) {
  IHA_RETURN_IF_ERROR(ExpectObject(value, field));
  AddedToken token;
  IHA_ASSIGN_OR_RETURN(token.content, GetString(value, "content", field));
  IHA_RETURN_IF_ERROR(GetInt(value, "id", field, 0, kMaxTokenId).status());
  IHA_ASSIGN_OR_RETURN(token.single_word, GetBool(value, "single_word", field));
  IHA_ASSIGN_OR_RETURN(token.lstrip, GetBool(value, "lstrip", field));
  IHA_ASSIGN_OR_RETURN(token.rstrip, GetBool(value, "rstrip", field));
  IHA_ASSIGN_OR_RETURN(token.normalized, GetBool(value, "normalized", field));
  IHA_ASSIGN_OR_RETURN(token.special, GetBool(value, "special", field));
  return token;
}

auto Flags(const AddedToken& t) {
  return std::tie(t.content, t.single_word, t.lstrip, t.rstrip, t.normalized, t.special);
}

bool EndsWithWord(std::string_view text) {
  return !text.empty() && IsWord(FirstChar(text.substr(LastCharStart(text))).value);
}
bool StartsWithWord(std::string_view text) { return !text.empty() && IsWord(FirstChar(text).value); }

size_t SpaceBefore(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t last = LastCharStart(text.substr(0, begin));
    if (!IsWhiteSpace(FirstChar(text.substr(last)).value)) break;
    begin = last;
  }
  return begin;
}
size_t SpaceAfter(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && IsWhiteSpace(FirstChar(text.substr(end)).value))
    end += FirstChar(text.substr(end)).length;
  return end;
}

}  // namespace

void AddedTokens::Trie::Add(std::string_view text, int32_t id) {
  if (text.empty()) return;
  if (nodes.empty()) nodes.emplace_back();
  first[static_cast<unsigned char>(text[0])] = true;
  int32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto it = nodes[at].next.find(byte);
    if (it != nodes[at].next.end()) {
      at = it->second;
      continue;
    }
    const auto fresh = static_cast<int32_t>(nodes.size());
    nodes[at].next.emplace(byte, fresh);
    nodes.emplace_back();
    at = fresh;
  }
  if (nodes[at].id < 0) nodes[at].id = id;  // of equal texts the first is found
}

size_t AddedTokens::Trie::Longest(std::string_view text, int32_t* id) const {
  size_t best = 0;
  int32_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto it = nodes[at].next.find(static_cast<unsigned char>(text[i]));
    if (it == nodes[at].next.end()) break;
    at = it->second;
    if (nodes[at].id < 0) continue;
    best = i + 1;
    *id = nodes[at].id;
  }
  return best;
}

absl::Status AddedTokens::Add(AddedToken token, const Bpe& model, const std::string& field) {
  if (token.content.empty()) return absl::OkStatus();
  const auto known = ids_.find(token.content);
  if (known != ids_.end() && Flags(by_id_.at(known->second)) == Flags(token)) return absl::OkStatus();
  const auto size = static_cast<int32_t>(model.token_count());
  if (known != ids_.end()) {
    token.id = known->second;
  } else if (const std::optional<int32_t> in_model = model.TokenId(token.content)) {
    token.id = *in_model;
  } else {
    token.id = std::max(size, id_limit());
  }
  if (token.id > kMaxTokenId) return InvalidArgument("{}: more than {} ids", field, kMaxTokenId);
  ids_[token.content] = token.id;
  listed_.push_back(token);
  by_id_[token.id] = std::move(token);
  return absl::OkStatus();
}

absl::StatusOr<AddedTokens> AddedTokens::Parse(const Json& list, const Bpe& model, const Normalizer* normalizer) {
  AddedTokens added;
  if (list.is_null()) return added;
  if (!list.is_array()) return InvalidArgument("added_tokens: found {}, expected a list", JsonKind(list));
  size_t nodes = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string field = fmt::format("added_tokens[{}]", i);
    IHA_ASSIGN_OR_RETURN(AddedToken token, ParseToken(list[i], field));
    if (token.special) added.special_.emplace(token.content, true);
    token.decoded =
        token.normalized && normalizer != nullptr ? normalizer->Apply(token.content, nullptr) : token.content;
    if (token.decoded.empty() && !token.content.empty()) {
      return InvalidArgument("{}: the normalizer leaves nothing of \"{}\", expected a text to look for", field,
                             TerminalSafe(token.content, 40));
    }
    nodes += std::max(token.content.size(), token.decoded.size());
    if (nodes > kMaxTrieNodes) return InvalidArgument("{}: the tokens' texts exceed {} bytes", field, kMaxTrieNodes);
    IHA_RETURN_IF_ERROR(added.Add(std::move(token), model, field));
  }
  // Special tokens come first, so that they win over equal normalized texts.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : added.listed_) {
      if ((added.special_.count(token.content) != 0) != special) continue;
      (token.normalized ? added.normalized_ : added.raw_)
          .Add(token.normalized ? token.decoded : token.content, token.id);
    }
  }
  for (auto& [id, token] : added.by_id_) {
    token.special = added.special_.count(token.content) != 0;
    token.skipped = added.special_.count(token.decoded) != 0;
  }
  added.listed_.clear();
  return added;
}

void AddedTokens::Cut(std::string_view text, Kind kind, bool parse_special, std::vector<AddedPart>* parts) const {
  const Trie& trie = kind == Kind::kRaw ? raw_ : normalized_;
  size_t done = 0;  // text before it is in parts
  size_t next = 0;
  size_t spaces_end = 0;  // of the last run of spaces that an rstrip has walked
  for (size_t at = 0; !trie.nodes.empty() && at < text.size(); at = next) {
    next = at + 1;
    if (!trie.first[static_cast<unsigned char>(text[at])]) continue;
    int32_t id = -1;
    const size_t length = trie.Longest(text.substr(at), &id);
    if (length == 0) continue;
    next = at + length;
    const AddedToken& token = by_id_.at(id);
    if (token.special && !parse_special) continue;
    if (token.single_word && (EndsWithWord(text.substr(0, at)) || StartsWithWord(text.substr(next)))) continue;
    // Each run of spaces is walked once, or a million line ends that are such tokens would take hours.
    const size_t begin = token.lstrip ? (done < at ? done + SpaceBefore(text.substr(done, at - done)) : done) : at;
    if (token.rstrip && next > spaces_end) spaces_end = next + SpaceAfter(text.substr(next));
    const size_t end = token.rstrip ? std::max(next, spaces_end) : next;
    if (begin >= end) continue;  // inside spaces that an rstrip took, an lstrip leaves nothing of the token
    if (done < begin) parts->push_back({done, begin, -1});
    parts->push_back({begin, end, id});
    done = end;
  }
  if (done < text.size()) parts->push_back({done, text.size(), -1});
}

const AddedToken* AddedTokens::ById(int64_t id) const {
  const auto it = by_id_.find(static_cast<int32_t>(id));
  return it == by_id_.end() || it->first != id ? nullptr : &it->second;
}

std::optional<int32_t> AddedTokens::TokenId(std::string_view content) const {
  const auto it = ids_.find(std::string(content));
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

}  // namespace iha::tokenizer
