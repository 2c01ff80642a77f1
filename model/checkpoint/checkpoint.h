// checkpoint.h: one checkpoint folder in Hugging Face form, opened, validated and mapped.
//
// Open reads config.json, generation_config.json and the header of model.safetensors (or of the shards that
// model.safetensors.index.json names; other .safetensors files are not read) and checks that every tensor that the
// config calls for is there with its shape and a float dtype. Weights are mapped, not read. Views live as long as the
// object; moving keeps them. Blocking: file reads only. Thread: const members from any.
// Errors (one line, folder and file named): NotFound, InvalidArgument, DataLoss: bad checkpoint, no retry.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/digest.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/safetensors.h"
#include "model/checkpoint/tensor.h"

namespace iha::checkpoint {

// A tensor that the forward pass reads.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
};
// All of them, in file-like order (embedding, layers, norm, head); a tied head is not listed.
std::vector<TensorSpec> RequiredTensors(const ModelConfig& config);

// Threads that WeightsDigest uses of `threads`: no more than there are tensors, nor than the bytes are worth.
int DigestThreads(int threads, size_t tensors, int64_t bytes);

class Checkpoint {
 public:
  static absl::StatusOr<Checkpoint> Open(const std::string& directory);

  // config().context_tokens becomes at least `positions`; WeightsDigest stays that of the checkpoint as it is.
  // InvalidArgument: RoPE's angles there would not be exact (says how far they are).
  absl::Status ExtendContext(int64_t positions);

  const std::string& directory() const { return directory_; }
  const ModelConfig& config() const { return config_; }
  // eos ids: generation_config.json's if it names any, else config.json's.
  const GenerationConfig& generation() const { return generation_; }
  // Unknown config fields, tensors that nothing reads.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Every tensor of the files, by name, read or not. A tied embedding stored as lm_head.weight alone is there twice.
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }

  // Files that hold tensors, as opened, and which of them holds a tensor of tensors().
  const std::vector<Safetensors>& files() const { return files_; }
  size_t FileOf(std::string_view name) const { return file_of_.find(name)->second; }

  // NotFound if absent.
  absl::StatusOr<TensorView> Tensor(std::string_view name) const;
  // The same, and InvalidArgument unless shape and a float dtype are as expected (which Open has checked for every
  // tensor of RequiredTensors).
  absl::StatusOr<TensorView> ExpectTensor(std::string_view name, std::span<const int64_t> shape) const;

  // Number of weights in RequiredTensors.
  int64_t parameters() const { return parameters_; }
  // The checkpoint's identity: SHA-256 over the config's function bytes and, in name order, (name, dtype, shape,
  // SHA-256 of the bytes) of each required tensor. Shard layout, unread tensors and config spelling don't enter. Reads
  // every weight (about 1.8 GB/s a thread here): call once and keep. `threads` changes no bit.
  Digest WeightsDigest(int threads = 1) const;
  // After packing: resident pages of the mapped files are given back (madvise); views stay valid.
  void DropPages() const;
  // The same for one tensor, as soon as it has been packed.
  void DropPages(const TensorView& tensor) const { MappedFile::DropPages(tensor.bytes); }

 private:
  Checkpoint() = default;
  void DropIdsBeyondVocabulary();
  absl::Status OpenWeights();
  absl::Status OpenShards(const std::string& index_path);
  absl::Status AddFile(const std::string& path);
  absl::Status ReconcileTiedHead();
  absl::Status CheckTensors();

  std::string directory_;
  ModelConfig config_;
  GenerationConfig generation_;
  std::vector<std::string> warnings_;
  std::vector<Safetensors> files_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, size_t, std::less<>> file_of_;  // tensor -> index into files_
  int64_t parameters_ = 0;
  int64_t stated_context_ = 0;  // config.json's
};

}  // namespace iha::checkpoint
