// gguf_file.h: reader (mmap) of GGUF files, versions 2 and 3, little endian.
//
// Every length, count, offset and type is checked before use; views lie inside the mapped file and live as long as the
// object; moving keeps them. Errors are InvalidArgument / DataLoss / NotFound and name file, key or tensor, found and
// expected. Thread: const members from any.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/gguf/ggml_types.h"
#include "model/checkpoint/mapped_file.h"

namespace iha::checkpoint {

// Arrays hold strings or numbers; arrays of arrays are refused. 64-bit unsigned elements above INT64_MAX are refused.
using GgufStrings = std::vector<std::string_view>;
using GgufIntegers = std::vector<int64_t>;
using GgufReals = std::vector<double>;
struct GgufF32 {  // kept apart from double: the shortest decimal of a float32 is asked for
  float value = 0;
};
using GgufValue = std::variant<bool, int64_t, GgufF32, double, std::string_view, GgufStrings, GgufIntegers, GgufReals>;

struct GgufTensor {
  std::vector<int64_t> shape;  // row-major, as Hugging Face writes it (GGUF stores it reversed)
  GgmlType type;
  std::span<const std::byte> bytes;  // whole blocks; empty if the type is not supported (type.row == null)
};

class GgufFile {
 public:
  static absl::StatusOr<GgufFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  void DropPages() const { file_.DropPages(); }

  // Null if the key is absent or holds another type.
  template <class T>
  const T* Find(std::string_view key) const {
    const auto it = metadata_.find(key);
    return it == metadata_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  // Null if the key is absent; InvalidArgument "FILE: key KEY is no WHAT" if it holds another type.
  template <class T>
  absl::StatusOr<const T*> Optional(std::string_view key, std::string_view what) const {
    const T* value = Find<T>(key);
    if (value == nullptr && metadata_.contains(key)) return OtherType(key, what);
    return value;
  }
  // Present with the type, or InvalidArgument "FILE: key KEY is missing or no WHAT".
  absl::StatusOr<int64_t> Integer(std::string_view key, std::optional<int64_t> fallback = std::nullopt) const;
  // Finite, too.
  absl::StatusOr<float> Real(std::string_view key, std::optional<float> fallback = std::nullopt) const;
  absl::StatusOr<std::string_view> Text(std::string_view key) const;

 private:
  explicit GgufFile(MappedFile file) : file_(std::move(file)) {}
  absl::Status Parse();
  absl::Status OtherType(std::string_view key, std::string_view what) const;

  MappedFile file_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace iha::checkpoint
