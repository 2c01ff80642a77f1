// tokenizer_pipelines.h: from the names that GGUF has for tokenizers to the stages of tokenizer.json. Private to this
// folder. Pure; thread: any.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/gguf/import_parts.h"

namespace iha::checkpoint {

enum class GgufVocabularyKind { kByteLevel, kSentencePiece, kGemma };

struct GgufTokenizerKind {
  GgufVocabularyKind vocabulary = GgufVocabularyKind::kByteLevel;
  std::string pre;                // byte level: tokenizer.ggml.pre, checked
  bool add_prefix_space = false;  // SentencePiece
  bool ignore_merges = false;     // byte level
  bool adds_bos = false;          // where tokenizer.ggml.add_bos_token is absent, as llama.cpp and transformers
};
// InvalidArgument with the known names for any other.
absl::StatusOr<GgufTokenizerKind> ReadTokenizerKind(const GgufFile& file, const GgufModel& model);

// The keys normalizer, pre_tokenizer, decoder and model (without vocab and merges) of tokenizer.json: those of the
// model families' own files, equal in function to what transformers builds from such a GGUF file.
nlohmann::ordered_json TokenizerStages(const GgufTokenizerKind& kind);

// SentencePiece vocabularies list no merges. They are recovered as transformers does (generate_merges): every split of
// a token into two tokens, best score first, then longer left part, longer right part, token id. `scores` are finite,
// as many as `tokens`, which are unique and valid UTF-8. The result points into `tokens`. InvalidArgument as soon as
// their texts and what it takes to order them exceed max_bytes: a hostile vocabulary implies many more than it holds.
struct SentencePieceMerge {
  std::string_view left;
  std::string_view right;
};
absl::StatusOr<std::vector<SentencePieceMerge>> SentencePieceMerges(std::span<const std::string> tokens,
                                                                    std::span<const double> scores, size_t max_bytes);

}  // namespace iha::checkpoint
