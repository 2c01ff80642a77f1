#include "model/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "model/tokenizer/unicode.h"

namespace iha::tokenizer {
namespace {

constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
// Up to this many symbols a scan over all pairs beats the heap.
constexpr size_t kShortWord = 24;

}  // namespace

std::optional<int32_t> Bpe::TokenId(std::string_view token) const {
  const auto it = vocab_.find(token);
  if (it == vocab_.end()) return std::nullopt;
  return it->second;
}

const std::string* Bpe::TokenText(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(texts_.size()) || !used_[static_cast<size_t>(id)]) return nullptr;
  return &texts_[static_cast<size_t>(id)];
}

int32_t Bpe::CharId(char32_t c) const {
  if (c < low_chars_.size()) return low_chars_[c];
  const auto it = high_chars_.find(c);
  return it == high_chars_.end() ? -1 : it->second;
}

// A character without a token: its bytes, else the unknown token, else nothing. `pending` is an unknown token not yet
// appended; as in the original, byte tokens do not flush it.
void Bpe::AppendUnknown(std::string_view character, std::vector<int32_t>* symbols,
                        std::optional<int32_t>* pending) const {
  const auto has_byte = [this](char b) { return byte_ids_[static_cast<unsigned char>(b)] >= 0; };
  if (!byte_ids_.empty() && std::all_of(character.begin(), character.end(), has_byte)) {
    for (const char b : character) symbols->push_back(byte_ids_[static_cast<unsigned char>(b)]);
    return;
  }
  if (!unk_id_.has_value()) return;
  if (pending->has_value() && !fuse_unk_) symbols->push_back(**pending);
  *pending = unk_id_;
}

void Bpe::Symbols(std::string_view word, std::vector<int32_t>* symbols) const {
  symbols->clear();
  std::optional<int32_t> pending;
  std::string decorated;
  for (size_t i = 0; i < word.size();) {
    const CodePoint c = FirstChar(word.substr(i));
    std::string_view text = word.substr(i, c.length);
    const bool with_prefix = i > 0 && !prefix_.empty();
    i += c.length;
    const bool with_suffix = i == word.size() && !suffix_.empty();
    int32_t id;
    if (with_prefix || with_suffix) {
      decorated = (with_prefix ? prefix_ : "") + std::string(text) + (with_suffix ? suffix_ : "");
      text = decorated;
      id = TokenId(text).value_or(-1);
    } else {
      id = CharId(c.value);
    }
    if (id < 0) {
      AppendUnknown(text, symbols, &pending);
      continue;
    }
    if (pending.has_value()) symbols->push_back(*pending);
    pending.reset();
    symbols->push_back(id);
  }
  if (pending.has_value()) symbols->push_back(*pending);
}

void Bpe::MergeShort(Scratch* scratch) const {
  std::vector<int32_t>& symbols = scratch->symbols;
  std::vector<Merge>& pairs = scratch->pairs;  // pairs[i] joins symbols i and i + 1
  const auto pair_at = [&](size_t i) {
    const Merge* merge = FindMerge(symbols[i], symbols[i + 1]);
    return merge == nullptr ? Merge{kNoRank, -1} : *merge;
  };
  pairs.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs.push_back(pair_at(i));
  while (!pairs.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < pairs.size(); ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) return;
    symbols[best] = pairs[best].id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) pairs[best - 1] = pair_at(best - 1);
    if (best < pairs.size()) pairs[best] = pair_at(best);
  }
}

void Bpe::MergeLong(Scratch* scratch) const {
  std::vector<int32_t>& symbols = scratch->symbols;
  auto& nodes = scratch->nodes;
  auto& heap = scratch->heap;
  const auto count = static_cast<int32_t>(symbols.size());
  const auto offer = [&](int32_t left, int32_t right, bool sift) {
    const Merge* merge = FindMerge(symbols[left], symbols[right]);
    if (merge == nullptr) return;
    heap.push_back(uint64_t{merge->rank} << 32 | static_cast<uint32_t>(left));
    if (sift) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  nodes.clear();
  heap.clear();
  for (int32_t i = 0; i < count; ++i) nodes.push_back({i - 1, i + 1 < count ? i + 1 : -1, true});
  for (int32_t i = 0; i + 1 < count; ++i) offer(i, i + 1, false);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t top = heap.back();
    heap.pop_back();
    const auto left = static_cast<int32_t>(top & 0xFFFFFFFF);
    const int32_t right = nodes[left].next;
    if (!nodes[left].live || right < 0) continue;
    // A candidate is out of date once either side has merged with something else: the rank tells the pair.
    const Merge* merge = FindMerge(symbols[left], symbols[right]);
    if (merge == nullptr || merge->rank != top >> 32) continue;
    symbols[left] = merge->id;
    nodes[right].live = false;
    nodes[left].next = nodes[right].next;
    if (nodes[right].next >= 0) nodes[nodes[right].next].prev = left;
    if (nodes[left].prev >= 0) offer(nodes[left].prev, left, true);
    if (nodes[left].next >= 0) offer(left, nodes[left].next, true);
  }
  size_t kept = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (nodes[i].live) symbols[kept++] = symbols[i];
  }
  symbols.resize(kept);
}

void Bpe::Encode(std::string_view word, Scratch* scratch, std::vector<int32_t>* ids) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    if (const std::optional<int32_t> whole = TokenId(word)) {
      ids->push_back(*whole);
      return;
    }
  }
  const bool cached = word.size() <= WordCache::kMaxWordBytes;
  const size_t hash = cached ? std::hash<std::string_view>()(word) : 0;
  if (cached && cache_.Find(word, hash, ids)) return;
  Symbols(word, &scratch->symbols);
  if (scratch->symbols.size() <= kShortWord) {
    MergeShort(scratch);
  } else {
    MergeLong(scratch);
  }
  if (cached) cache_.Store(word, hash, scratch->symbols);
  ids->insert(ids->end(), scratch->symbols.begin(), scratch->symbols.end());
}

}  // namespace iha::tokenizer
