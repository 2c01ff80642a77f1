#include "benchmarks/manifest.h"

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "common/canonical.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGsm8kSource = "openai/grade-school-math @ 3101c7d5";
constexpr std::string_view kExemplarSource = "lm-eval 0.4.13 (its task files, one JSON object a line)";
constexpr std::string_view kMathSource = "openai/prm800k @ 7ecc7947";
constexpr std::string_view kHumanEvalSource = "openai/human-eval @ 6d43fb98";
constexpr std::string_view kMbppSource = "google-research/google-research, mbpp/";

constexpr std::string_view kRulerSource = "NVIDIA/RULER @ c3f5e3b4";
constexpr std::string_view kPunktSource = "nltk_data, english punkt_tab";
constexpr std::string_view kWonderwordsSource = "mrmaxguns/wonderwordsmodule @ 5dfa4555 (3.0.1)";
constexpr std::string_view kSquadSource = "SQuAD, the paragraphs and questions that the data root's SOURCE.md names";
constexpr std::string_view kHotpotSource = "HotpotQA dev distractor, rows 1-100";

constexpr std::array<DataFile, 20> kManifest = {{
    {"gsm8k/test.jsonl", 749738, "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
     "grade_school_math/data/test.jsonl", kGsm8kSource},
    {"gsm8k/train.jsonl", 4166206, "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465",
     "grade_school_math/data/train.jsonl", kGsm8kSource},
    {"exemplars/gsm8k_cot.jsonl", 2317, "834e15ff15ab7058dfb6d1d928a6263a3637cfbf9a2f9240eea3753c2e3463c6",
     "exemplars/gsm8k_cot.jsonl", kExemplarSource},
    {"exemplars/gsm8k_cot_llama.jsonl", 2357, "bdf781ffe51291e97efe06145c3abdc5ac0337c334b48f4dab78ac5930e9701b",
     "exemplars/gsm8k_cot_llama.jsonl", kExemplarSource},
    {"exemplars/minerva_math.jsonl", 1894, "b70d5180b6bc699bd6a3f9188c3aa2a6ae99087ca7fd77b9461f394c5c10a7b7",
     "exemplars/minerva_math.jsonl", kExemplarSource},
    {"math500/test.jsonl", 446564, "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
     "prm800k/math_splits/test.jsonl", kMathSource},
    {"humaneval/HumanEval.jsonl.gz", 44877, "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
     "data/HumanEval.jsonl.gz", kHumanEvalSource},
    {"mbpp/mbpp.jsonl", 563743, "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f", "mbpp/mbpp.jsonl",
     kMbppSource},
    {"mbpp/sanitized-mbpp.json", 278372, "8ac32b2799150228e2d745aed09c870b7e4444246d4727d1004576207ef40769",
     "mbpp/sanitized-mbpp.json", kMbppSource},
    {"ruler/PaulGrahamEssays.json", 3108596, "1af094ff36d47893ea3c09cc570038053b711a9ba728c9d2dca036dbb231fa41",
     "scripts/data/synthetic/json/PaulGrahamEssays.json", kRulerSource},
    {"ruler/punkt_tab/abbrev_types.txt", 619, "92a3e070f43d9b4c5534758ca40ad7343b04e7e29bfe0c2eb658a39445a4f779",
     "tokenizers/punkt_tab/english/abbrev_types.txt", kPunktSource},
    {"ruler/punkt_tab/collocations.tab", 594, "8e2da1225e4dd2cc9dba261ee231ccb134859e21b46006e7f472c5ee269af0cf",
     "tokenizers/punkt_tab/english/collocations.tab", kPunktSource},
    {"ruler/punkt_tab/ortho_context.tab", 236303, "4bbcca25ed3d3f06c02402abf8419b9f033b8adc06e7b482eca4e45f81a5dc4c",
     "tokenizers/punkt_tab/english/ortho_context.tab", kPunktSource},
    {"ruler/punkt_tab/sent_starters.txt", 241, "f3f8535483e1dba487241b764945168123bca3209a9645e59acd1225dc76edac",
     "tokenizers/punkt_tab/english/sent_starters.txt", kPunktSource},
    {"ruler/wonderwords/nounlist.txt", 54752, "8d88b3ebc2e2969ed92ebe49cdb0c8a87c2ad3b27493d7afdff608f2e51c5bc9",
     "wonderwords/assets/nounlist.txt", kWonderwordsSource},
    {"ruler/wonderwords/adjectivelist.txt", 7403, "66814d46b7e292c83e839d12fe2fa083c8f66779b14b294e1be4e1342c5d4131",
     "wonderwords/assets/adjectivelist.txt", kWonderwordsSource},
    {"ruler/wonderwords/verblist.txt", 6967, "9fbf5e4e69b8869aebd88e6d545312ff9f878a747327ede5f6dbbba5c27b08ad",
     "wonderwords/assets/verblist.txt", kWonderwordsSource},
    {"ruler/qa/squad-dev-merged.json", 1686061, "fedb62f4f7bf759cb285a1a04dc08c0e410ef014677821d0bd534a5162bec57b",
     "ruler/qa/squad-dev-merged.json", kSquadSource},
    {"ruler/qa/hotpot_dev_distractor_first100.json", 644044,
     "191b39321939a0cbdbf9b4e4d637bd73039e3d54766fd8b7b1a2b8f62dedcc73", "ruler/qa/hotpot_dev_distractor_first100.json",
     kHotpotSource},
    {"ruler/english_words.json", 8564991, "affcd6d45fdf3cc843d585c99c97ad615094e760e6c4756b654bab6c73bc2eca",
     "scripts/data/synthetic/json/english_words.json", kRulerSource, /*optional=*/true},
}};

constexpr std::string_view kHowToImport =
    "import the original with `iha-eval data import --from DIR` (a checkout of the publisher's repository)";

bool Matches(const DataFile& file, std::string_view bytes) {
  return static_cast<int64_t>(bytes.size()) == file.bytes && Sha256Of(bytes).Hex() == file.sha256;
}

absl::Status Mismatch(const std::string& path, const DataFile& file, std::string_view bytes) {
  return DataLoss("{}: found {} bytes with sha256 {}, expected {} bytes with sha256 {} ({} of {}); {}", path,
                  bytes.size(), Sha256Of(bytes).Hex(), file.bytes, file.sha256, file.publisher_path, file.source,
                  kHowToImport);
}

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string BaseName(std::string_view path) { return fs::path(path).filename().string(); }

absl::StatusOr<ImportedFile> Store(const DataFile& file, const std::string& bytes, const std::string& data_root) {
  const fs::path target = fs::path(data_root) / file.path;
  ImportedFile imported{std::string(file.path), file.bytes, false};
  if (IsFile(target)) {
    const auto present = Sha256OfFile(target.string());
    if (present.ok() && present->Hex() == file.sha256) {
      imported.already_present = true;
      return imported;
    }
  }
  IHA_RETURN_IF_ERROR(MakeFolders(target.parent_path().string()));
  IHA_RETURN_IF_ERROR(WriteFileAtomic(target.string(), bytes));
  return imported;
}

std::string KnownNames() {
  std::string names;
  for (const DataFile& file : kManifest) {
    if (!names.empty()) names += ", ";
    names += file.publisher_path;
  }
  return names;
}

absl::StatusOr<std::vector<ImportedFile>> ImportFile(const std::string& from, const std::string& data_root) {
  IHA_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(from));
  const DataFile* same_name = nullptr;
  for (const DataFile& file : kManifest) {
    if (Matches(file, bytes)) {
      IHA_ASSIGN_OR_RETURN(ImportedFile imported, Store(file, bytes, data_root));
      return std::vector<ImportedFile>{std::move(imported)};
    }
    if (same_name == nullptr && BaseName(file.path) == BaseName(from)) same_name = &file;
  }
  if (same_name != nullptr) return Mismatch(from, *same_name, bytes);
  return InvalidArgument("{}: sha256 {} is no known data file; expected one of {}", from, Sha256Of(bytes).Hex(),
                         KnownNames());
}

absl::StatusOr<std::vector<ImportedFile>> ImportFolder(const std::string& from, const std::string& data_root) {
  std::vector<ImportedFile> imported;
  // A file of a known bare name with other bytes: only told if nothing else fits.
  std::optional<absl::Status> near_miss;
  for (const DataFile& file : kManifest) {
    const std::string flat = BaseName(file.path);
    for (const std::string& name : {std::string(file.path), std::string(file.publisher_path), flat}) {
      const fs::path candidate = fs::path(from) / name;
      if (!IsFile(candidate)) continue;
      IHA_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(candidate.string()));
      if (!Matches(file, bytes)) {
        const absl::Status mismatch = Mismatch(candidate.string(), file, bytes);
        if (name != flat) return mismatch;
        near_miss = near_miss.value_or(mismatch);
        continue;
      }
      IHA_ASSIGN_OR_RETURN(ImportedFile stored, Store(file, bytes, data_root));
      imported.push_back(std::move(stored));
      break;
    }
  }
  if (!imported.empty()) return imported;
  if (near_miss.has_value()) return *near_miss;
  return InvalidArgument("{}: no known data file in this folder; expected some of {}", from, KnownNames());
}

}  // namespace

std::span<const DataFile> DataManifest() { return kManifest; }

const DataFile* FindDataFile(std::string_view path) {
  for (const DataFile& file : kManifest) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

absl::StatusOr<std::string> ReadDataFile(const std::string& data_root, std::string_view path) {
  const DataFile* file = FindDataFile(path);
  if (file == nullptr) return Internal("data file '{}' is not in the manifest", path);
  if (data_root.empty()) {
    return NotFound("data root: not set, but {} is needed; give --data-root DIR or set IHA_EVAL_DATA, and {}", path,
                    kHowToImport);
  }
  const std::string full = (fs::path(data_root) / path).string();
  absl::StatusOr<std::string> bytes = ReadFile(full);
  if (absl::IsNotFound(bytes.status())) {
    return NotFound("{}: no such file; expected {} of {}; {}", full, file->publisher_path, file->source, kHowToImport);
  }
  IHA_RETURN_IF_ERROR(bytes.status());
  if (!Matches(*file, *bytes)) return Mismatch(full, *file, *bytes);
  return bytes;
}

Digest DigestOfDataFiles(std::span<const std::string> paths) {
  CanonicalWriter writer("iha.data", 1);
  writer.List(paths.size());
  for (const std::string& path : paths) {
    const DataFile* file = FindDataFile(path);
    writer.String(path).String(file == nullptr ? "" : file->sha256);
  }
  return writer.Hash();
}

absl::StatusOr<std::vector<ImportedFile>> ImportData(const std::string& from, const std::string& data_root) {
  if (data_root.empty()) return InvalidArgument("data root: not set; give --data-root DIR or set IHA_EVAL_DATA");
  std::error_code ignored;
  if (fs::is_directory(from, ignored)) return ImportFolder(from, data_root);
  return ImportFile(from, data_root);
}

}  // namespace iha::benchmarks
