// gguf_builder.h: writes small GGUF files for tests, well-formed unless told otherwise.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace iha::checkpoint::testing {

class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  GgufBuilder& U32(std::string_view key, uint32_t value) { return Key(key, 4).Raw(value); }
  GgufBuilder& F32(std::string_view key, float value) { return Key(key, 6).Raw(value); }
  GgufBuilder& Bool(std::string_view key, bool value) { return Key(key, 7).Raw<uint8_t>(value); }
  GgufBuilder& Text(std::string_view key, std::string_view value) {
    Key(key, 8);
    keys_ += String(value);
    return *this;
  }
  GgufBuilder& Texts(std::string_view key, const std::vector<std::string>& values) {
    Key(key, 9).Raw<uint32_t>(8).Raw<uint64_t>(values.size());
    for (const std::string& value : values) keys_ += String(value);
    return *this;
  }
  GgufBuilder& I32s(std::string_view key, const std::vector<int32_t>& values) {
    Key(key, 9).Raw<uint32_t>(5).Raw<uint64_t>(values.size());
    for (const int32_t value : values) Raw(value);
    return *this;
  }
  GgufBuilder& F32s(std::string_view key, const std::vector<float>& values) {
    Key(key, 9).Raw<uint32_t>(6).Raw<uint64_t>(values.size());
    for (const float value : values) Raw(value);
    return *this;
  }
  // A key whose type byte and payload are the caller's.
  GgufBuilder& RawKey(std::string_view key, uint32_t type, std::string_view payload) {
    Key(key, type);
    keys_ += payload;
    return *this;
  }
  // shape as Hugging Face writes it (rows first).
  GgufBuilder& Tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                      std::string_view bytes) {
    tensors_ += String(name) + Bytes<uint32_t>(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i > 0; --i) tensors_ += Bytes(shape[i - 1]);
    tensors_ += Bytes(type) + Bytes<uint64_t>(data_.size());
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensor_count_;
    return *this;
  }
  GgufBuilder& FloatTensor(std::string_view name, const std::vector<uint64_t>& shape,
                           const std::vector<float>& values) {
    return Tensor(name, shape, 0, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  std::string Build() const {
    std::string file = "GGUF" + Bytes(version_) + Bytes(tensor_count_) + Bytes(key_count_) + keys_ + tensors_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

  template <class T>
  static std::string Bytes(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static std::string String(std::string_view text) { return Bytes<uint64_t>(text.size()) + std::string(text); }

 private:
  GgufBuilder& Key(std::string_view key, uint32_t type) {
    ++key_count_;
    keys_ += String(key) + Bytes(type);
    return *this;
  }
  template <class T>
  GgufBuilder& Raw(T value) {
    keys_ += Bytes(value);
    return *this;
  }

  uint32_t version_;
  uint64_t tensor_count_ = 0, key_count_ = 0;
  std::string keys_, tensors_, data_;
};

}  // namespace iha::checkpoint::testing
