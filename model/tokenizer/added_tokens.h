// added_tokens.h: the tokens that are cut out of a text before the model sees it.
//
// As in the `tokenizers` crate: tokens with normalized = false are looked for in the raw text, then, in each part that
// is left, those with normalized = true (their own text normalized, too) in the normalized part. Leftmost, longest
// first. lstrip and rstrip swallow the white space beside a match, single_word refuses one inside a word.
// Immutable; thread: any. Errors of Parse: InvalidArgument naming the field.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/json_fields.h"
#include "model/tokenizer/normalizer.h"

namespace iha::tokenizer {

struct AddedToken {
  std::string content;
  // What the decoder is given: the content, normalized if `normalized`.
  std::string decoded;
  int32_t id = 0;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = true;
  bool special = false;
  // Decoding without special tokens leaves it out: what the decoder would be given is the text of a special token.
  bool skipped = false;
};

// A part of a text: an added token, or (id = -1) what lies between two.
struct AddedPart {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = -1;
};

class AddedTokens {
 public:
  // Of normalized tokens whose texts become equal the first is found (the crate picks one by chance).
  // `list` is the value of "added_tokens" (may be null). A token that the model's vocabulary holds keeps that id;
  // others are numbered in order from the vocabulary's size on, whatever "id" says: so the crate does.
  static absl::StatusOr<AddedTokens> Parse(const Json& list, const Bpe& model, const Normalizer* normalizer);

  enum class Kind { kRaw, kNormalized };
  // The whole of `text`, cut; nothing for "". With parse_special = false matches of special tokens stay text.
  void Cut(std::string_view text, Kind kind, bool parse_special, std::vector<AddedPart>* parts) const;
  bool has_normalized() const { return !normalized_.nodes.empty(); }

  // nullptr if `id` is no added token.
  const AddedToken* ById(int64_t id) const;
  std::optional<int32_t> TokenId(std::string_view content) const;
  // 1 + the largest id, 0 if there are none.
  int32_t id_limit() const { return by_id_.empty() ? 0 : by_id_.rbegin()->first + 1; }

 private:
  // Bytes of all searched texts.
  struct Trie {
    struct Node {
      std::map<unsigned char, int32_t> next;
      int32_t id = -1;
    };
    std::vector<Node> nodes;
    std::array<bool, 256> first{};
    void Add(std::string_view text, int32_t id);
    // The longest token at the start of `text`: its length, or 0.
    size_t Longest(std::string_view text, int32_t* id) const;
  };

  absl::Status Add(AddedToken token, const Bpe& model, const std::string& field);

  std::vector<AddedToken> listed_;  // one for each content and flags, in file order
  std::map<int32_t, AddedToken> by_id_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<std::string, bool> special_;  // contents
  Trie raw_, normalized_;
};

}  // namespace iha::tokenizer
