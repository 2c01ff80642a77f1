// manifest.h: the data files that benchmarks read, by size and SHA-256; reading them checked, and importing originals.
//
// Nothing is downloaded. A file that is not byte for byte the published one is an error, never a warning: scores of
// changed data are scores of another benchmark. Blocking I/O; thread: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/digest.h"

namespace iha::benchmarks {

struct DataFile {
  std::string_view path;            // below the data root: "gsm8k/test.jsonl"
  int64_t bytes;                    // exact size
  std::string_view sha256;          // hex
  std::string_view publisher_path;  // where its publisher's repository has it
  std::string_view source;          // publisher and revision, for messages
  bool optional = false;            // a data root may lack it: what needs it says so
};

std::span<const DataFile> DataManifest();
const DataFile* FindDataFile(std::string_view path);  // nullptr when unknown

// The checked bytes of a manifest file. NotFound: no data root or no such file (says how to import). DataLoss: other
// bytes than published (names file, found and expected digest, and how to import).
absl::StatusOr<std::string> ReadDataFile(const std::string& data_root, std::string_view path);

// Digest over the digests of `paths`, in order: a benchmark's data_digest().
Digest DigestOfDataFiles(std::span<const std::string> paths);

struct ImportedFile {
  std::string path;  // below the data root
  int64_t bytes = 0;
  bool already_present = false;  // equal bytes were there; nothing was written
};
// Copies originals to the data root. `from` is a file, or a folder in a publisher's layout, in ours, or flat. Each file
// is checked before it is written, and written as one step. InvalidArgument: nothing known in `from`. DataLoss: a file
// has a known name but other bytes (found and expected digest). Errors of writing as common/file.h says.
absl::StatusOr<std::vector<ImportedFile>> ImportData(const std::string& from, const std::string& data_root);

}  // namespace iha::benchmarks
