// mapped_file.h: a file mapped read-only into memory; the base of the safetensors and GGUF readers.
//
// Open follows symbolic links (hub caches consist of them). The bytes stay valid while the object lives; moving keeps
// them. Nothing is read until touched. A file that another process shortens while it is mapped kills the reader
// (SIGBUS): checkpoints are replaced by rename, never rewritten in place. Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace iha::checkpoint {

class MappedFile {
 public:
  // Errors as in common/file.h; InvalidArgument too for what is no regular file.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Tells the kernel that the resident pages are not needed; reading them again is still right, only slower.
  void DropPages() const { DropPages(bytes()); }
  // The same for the whole pages inside of a part of a mapped file.
  static void DropPages(std::span<const std::byte> part);

 private:
  MappedFile(std::string path, const std::byte* data, size_t size) : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace iha::checkpoint
