// safetensors.h: reader (mmap) and writer of .safetensors files.
//
// Reader: every length, offset, shape and dtype is checked before use, so a view is always inside the file. Refused:
// a header longer than the file or 100 MB, unknown dtypes, shapes whose size overflows or differs from the offsets,
// overlaps, gaps, bytes after the last tensor, duplicate names. Errors are InvalidArgument / DataLoss / NotFound and
// name file, tensor, found, expected, what to do. Nothing is executed. Thread: const members from any.
// Writer: bytes go to FILE.tmp.HOST.PID, then fsync, then rename: a reader sees the old file or the whole new one. What
// a killed writer left is removed by the next one of the same FILE on the same host. What is no regular file is never
// replaced (InvalidArgument).
// Format: https://huggingface.co/docs/safetensors (8-byte header length, JSON header, data).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file.h"
#include "model/checkpoint/mapped_file.h"
#include "model/checkpoint/tensor.h"

namespace iha::checkpoint {

class Safetensors {
 public:
  static absl::StatusOr<Safetensors> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // In name order.
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  // The `__metadata__` object; empty if absent.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null if there is no such tensor.
  const TensorView* Find(std::string_view name) const;
  void DropPages() const { file_.DropPages(); }

 private:
  explicit Safetensors(MappedFile file) : file_(std::move(file)) {}
  absl::Status Parse();
  absl::Status CheckLayout(size_t data_size) const;

  MappedFile file_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

// What a file will hold, in the order in which the data is appended.
struct TensorPlan {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

// Streams a file of any size with bounded memory: Create, Append tensor by tensor (in pieces if wanted), Finish.
// Destroyed before Finish, or on an error, the temporary file is removed and `path` is untouched.
class SafetensorsWriter {
 public:
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path, const std::vector<TensorPlan>& plan,
                                                  const std::map<std::string, std::string>& metadata = {});
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();

  // Once *stop is true, Append gives Cancelled. `stop` outlives the writer; nullptr: never.
  void StopWhen(const std::atomic<bool>* stop) { stop_ = stop; }
  // The next bytes of the data section. Internal if more than planned.
  absl::Status Append(std::span<const std::byte> bytes);
  // Flushes, fsyncs, renames. Internal if bytes are missing; Unavailable if the disk refuses.
  absl::Status Finish();

 private:
  SafetensorsWriter(std::string path, std::string temporary, UniqueFd fd, int64_t remaining);
  absl::Status Write(const char* data, size_t size);
  void Abandon();

  std::string path_;
  std::string temporary_;
  UniqueFd fd_;  // locked, see temporary_folder.h
  int64_t remaining_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
};

// One tensor in memory and the whole file in one call.
struct NamedTensor {
  TensorPlan plan;
  std::span<const std::byte> bytes;
};
absl::Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace iha::checkpoint
