// bpe.h: byte-pair encoding of one word, as the `tokenizers` crate does it: the word's characters become symbols
// (bytes, the unknown token or nothing where a character has none), then the pair of lowest rank, leftmost first, is
// merged until no pair is left. Long words use a heap: time grows as n log n.
//
// Immutable but for a cache of words, which is safe to use from any thread. Errors of Parse: InvalidArgument naming the
// field: unknown model type, dropout, duplicate or huge ids, merges of unknown tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "model/tokenizer/json_fields.h"
#include "model/tokenizer/word_cache.h"

namespace iha::tokenizer {

// Largest id that a vocabulary may hold: tables are dense, so this bounds what a hostile file can make us allocate.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 24) - 1;

class Bpe {
 public:
  // Working memory of one caller, reused from word to word.
  class Scratch;

  static absl::StatusOr<std::unique_ptr<const Bpe>> Parse(const Json& model, const std::string& path);

  // Appends the ids of `word` (valid UTF-8).
  void Encode(std::string_view word, Scratch* scratch, std::vector<int32_t>* ids) const;

  std::optional<int32_t> TokenId(std::string_view token) const;
  // nullptr if no token has this id.
  const std::string* TokenText(int64_t id) const;
  size_t token_count() const { return vocab_.size(); }
  // 1 + the largest id.
  int32_t id_limit() const { return static_cast<int32_t>(texts_.size()); }

 private:
  struct Merge {
    uint32_t rank = 0;
    int32_t id = -1;
  };
  using Vocab = absl::flat_hash_map<std::string_view, int32_t, std::hash<std::string_view>, std::equal_to<>>;

  absl::Status ReadVocab(const Json& model, const std::string& path);
  absl::Status ReadOptions(const Json& model, const std::string& path);
  absl::Status ReadMerges(const Json& model, const std::string& path);
  absl::Status AddMerge(std::string_view left, std::string_view right, uint32_t rank, const std::string& field);
  absl::Status CheckUnknown(const std::string& unk_token, const std::string& path);
  void IndexCharacters();

  int32_t CharId(char32_t c) const;
  void Symbols(std::string_view word, std::vector<int32_t>* symbols) const;
  void AppendUnknown(std::string_view character, std::vector<int32_t>* symbols, std::optional<int32_t>* pending) const;
  const Merge* FindMerge(int32_t left, int32_t right) const {
    const auto it = merges_.find(uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right));
    return it == merges_.end() ? nullptr : &it->second;
  }
  void MergeShort(Scratch* scratch) const;
  void MergeLong(Scratch* scratch) const;

  std::vector<std::string> texts_;  // by id; the vocabulary's keys point here
  std::vector<bool> used_;          // by id
  Vocab vocab_;
  absl::flat_hash_map<uint64_t, Merge> merges_;  // by left id << 32 | right id
  std::vector<int32_t> low_chars_;               // ids of one-character tokens below U+0400
  absl::flat_hash_map<uint32_t, int32_t> high_chars_;
  std::vector<int32_t> byte_ids_;  // of <0x00>..<0xFF>, -1 where absent; empty without byte_fallback
  std::optional<int32_t> unk_id_;
  std::string prefix_, suffix_;  // continuing_subword_prefix, end_of_word_suffix
  bool fuse_unk_ = false;
  bool ignore_merges_ = false;
  mutable WordCache cache_;
};

class Bpe::Scratch {
 private:
  friend class Bpe;
  struct Node {
    int32_t prev;
    int32_t next;
    bool live;
  };
  std::vector<int32_t> symbols;
  std::vector<Merge> pairs;
  std::vector<Node> nodes;
  std::vector<uint64_t> heap;  // rank << 32 | position of the left symbol
};

}  // namespace iha::tokenizer
