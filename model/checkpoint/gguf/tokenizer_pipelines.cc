#include "model/checkpoint/gguf/tokenizer_pipelines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

constexpr const char* kBlock = "\xe2\x96\x81";  // U+2581, SentencePiece's space
constexpr const char* kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// GGUF names a byte-level pre-tokenizer only; the rules are those of the models' own tokenizer.json.
struct ByteLevelRow {
  const char* pre;
  const char* split;  // a regular expression; null: ByteLevel's own
  bool single_digits;
  bool nfc;
  bool ignore_merges;
  bool adds_bos;
};
constexpr ByteLevelRow kByteLevel[] = {
    {"smollm", nullptr, true, false, false, false},        {"gpt-2", nullptr, false, false, false, false},
    {"llama-bpe", kLlama3Split, false, false, true, true}, {"llama3", kLlama3Split, false, false, true, true},
    {"llama-v3", kLlama3Split, false, false, true, true},  {"qwen2", kQwen2Split, false, true, false, false}};

const ByteLevelRow* FindByteLevel(std::string_view pre) {
  const auto* row = std::find_if(std::begin(kByteLevel), std::end(kByteLevel),
                                 [pre](const ByteLevelRow& candidate) { return pre == candidate.pre; });
  return row == std::end(kByteLevel) ? nullptr : row;
}

ordered_json ByteLevel(bool add_prefix_space, bool use_regex = true) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

ordered_json BytePairs(bool sentence_piece, bool ignore_merges) {
  ordered_json model;
  model["type"] = "BPE";
  model["dropout"] = nullptr;
  model["unk_token"] = nullptr;
  model["continuing_subword_prefix"] = nullptr;
  model["end_of_word_suffix"] = nullptr;
  model["fuse_unk"] = sentence_piece;
  model["byte_fallback"] = sentence_piece;
  model["ignore_merges"] = ignore_merges;
  return model;
}

ordered_json ByteLevelStages(const ByteLevelRow& row) {
  ordered_json stages;
  stages["normalizer"] = row.nfc ? ordered_json{{"type", "NFC"}} : ordered_json(nullptr);
  ordered_json parts = ordered_json::array();
  if (row.single_digits) parts.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (row.split != nullptr) {
    parts.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", row.split}}}, {"behavior", "Isolated"}, {"invert", false}});
  }
  parts.push_back(ByteLevel(false, row.split == nullptr));
  stages["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
  stages["decoder"] = ByteLevel(true);
  stages["model"] = BytePairs(false, row.ignore_merges);
  return stages;
}

ordered_json SentencePieceStages(const GgufTokenizerKind& kind) {
  const bool gemma = kind.vocabulary == GgufVocabularyKind::kGemma;
  ordered_json stages;
  const ordered_json space = {{"String", " "}};
  if (gemma) {
    stages["normalizer"] = {{"type", "Replace"}, {"pattern", space}, {"content", kBlock}};
    stages["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", space}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
  } else {
    stages["normalizer"] = nullptr;
    stages["pre_tokenizer"] = {{"type", "Metaspace"},
                               {"replacement", kBlock},
                               {"prepend_scheme", kind.add_prefix_space ? "first" : "never"},
                               {"split", false}};
  }
  ordered_json decoders = ordered_json::array();
  decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kBlock}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (!gemma && kind.add_prefix_space) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  stages["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  stages["model"] = BytePairs(true, false);
  return stages;
}

size_t CodePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

absl::StatusOr<GgufTokenizerKind> ReadTokenizerKind(const GgufFile& file, const GgufModel& model) {
  IHA_ASSIGN_OR_RETURN(const std::string_view name, file.Text("tokenizer.ggml.model"));
  GgufTokenizerKind kind;
  if (name == "llama") {
    IHA_ASSIGN_OR_RETURN(const bool* prefix, file.Optional<bool>("tokenizer.ggml.add_space_prefix", "truth value"));
    kind.vocabulary = model.architecture->gemma ? GgufVocabularyKind::kGemma : GgufVocabularyKind::kSentencePiece;
    kind.add_prefix_space = kind.vocabulary == GgufVocabularyKind::kSentencePiece && (prefix == nullptr || *prefix);
    kind.adds_bos = true;
    return kind;
  }
  if (name != "gpt2") {
    return InvalidArgument("{}: tokenizer.ggml.model is {}, which is not supported (expected one of: gpt2, llama)",
                           file.path(), TerminalSafe(name, 200));
  }
  IHA_ASSIGN_OR_RETURN(const std::string_view pre, file.Text("tokenizer.ggml.pre"));
  const ByteLevelRow* row = FindByteLevel(pre);
  if (row == nullptr) {
    std::string known;
    for (const ByteLevelRow& candidate : kByteLevel) known += (known.empty() ? "" : ", ") + std::string(candidate.pre);
    return InvalidArgument("{}: tokenizer.ggml.pre is {}, which is not supported (expected one of: {})", file.path(),
                           TerminalSafe(pre, 200), known);
  }
  kind.pre = std::string(pre);
  kind.ignore_merges = row->ignore_merges;
  kind.adds_bos = row->adds_bos;
  return kind;
}

ordered_json TokenizerStages(const GgufTokenizerKind& kind) {
  return kind.vocabulary == GgufVocabularyKind::kByteLevel ? ByteLevelStages(*FindByteLevel(kind.pre))
                                                           : SentencePieceStages(kind);
}

absl::StatusOr<std::vector<SentencePieceMerge>> SentencePieceMerges(std::span<const std::string> tokens,
                                                                    std::span<const double> scores, size_t max_bytes) {
  std::unordered_set<std::string_view> known;
  std::vector<bool> has_size;  // what keeps a long token from being looked up in all its parts
  for (const std::string& token : tokens) {
    known.insert(token);
    if (has_size.size() <= token.size()) has_size.resize(token.size() + 1);
    has_size[token.size()] = true;
  }
  struct Ranked {
    double score;
    size_t left_points, right_points;
    SentencePieceMerge merge;
  };
  std::vector<Ranked> ranked;  // in token order, which the stable sort keeps
  size_t bytes = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if (!has_size[cut] || !has_size[token.size() - cut]) continue;
      const std::string_view left = token.substr(0, cut), right = token.substr(cut);
      if (!known.contains(left) || !known.contains(right)) continue;
      bytes += token.size() + sizeof(Ranked);
      if (bytes > max_bytes) {
        return InvalidArgument("the vocabulary implies merges of more than {} bytes; expected fewer or shorter tokens",
                               max_bytes);
      }
      ranked.push_back({scores[i], CodePoints(left), CodePoints(right), {left, right}});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.score, a.left_points, a.right_points) > std::tie(b.score, b.left_points, b.right_points);
  });
  std::vector<SentencePieceMerge> result;
  result.reserve(ranked.size());
  for (const Ranked& row : ranked) result.push_back(row.merge);
  return result;
}

}  // namespace iha::checkpoint
