#include "model/checkpoint/gguf/gguf_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::checkpoint {
namespace {

constexpr uint64_t kMaxDimensions = 4;  // GGML_MAX_DIMS
// Elements of all arrays together; a vocabulary of 262,144 tokens with merges has about 1.3 million. One that the file
// stores in a byte takes 8 in memory.
constexpr uint64_t kMaxElements = uint64_t{1} << 25;

// Value types of the format.
enum ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

std::string Shown(std::string_view text) { return TerminalSafe(text, 200); }

// Walks the file; after the first read past the end it stays failed and gives zeros.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T Read() {
    T value{};
    if (sizeof(T) > left()) {
      failed_ = true;
      position_ = bytes_.size();
    } else {
      std::memcpy(&value, bytes_.data() + position_, sizeof(T));
      position_ += sizeof(T);
    }
    return value;
  }
  std::string_view ReadString() {
    const uint64_t size = Read<uint64_t>();
    if (size > left()) {
      failed_ = true;
      position_ = bytes_.size();
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, size);
    position_ += size;
    return text;
  }
  // False when all arrays together would have more than kMaxElements.
  bool TakeElements(uint64_t count) {
    if (count > elements_left_) return false;
    elements_left_ -= count;
    return true;
  }
  size_t left() const { return bytes_.size() - position_; }
  size_t position() const { return position_; }
  bool failed() const { return failed_; }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  uint64_t elements_left_ = kMaxElements;
  bool failed_ = false;
};

absl::StatusOr<int64_t> ReadInteger(Cursor& in, uint32_t type) {
  switch (type) {
    case kU8:
      return in.Read<uint8_t>();
    case kI8:
      return in.Read<int8_t>();
    case kU16:
      return in.Read<uint16_t>();
    case kI16:
      return in.Read<int16_t>();
    case kU32:
      return in.Read<uint32_t>();
    case kI32:
      return in.Read<int32_t>();
    case kBool:
      return in.Read<uint8_t>() != 0 ? 1 : 0;
    case kI64:
      return in.Read<int64_t>();
    default: {
      const uint64_t value = in.Read<uint64_t>();
      if (value > static_cast<uint64_t>(INT64_MAX)) return InvalidArgument("is {}, beyond 63 bits", value);
      return static_cast<int64_t>(value);
    }
  }
}

bool IsInteger(uint32_t type) { return type <= kI32 || type == kBool || type == kU64 || type == kI64; }

// Bytes that one element takes at least: what bounds the memory that a count can ask for.
size_t MinimumSize(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    default:
      return 8;  // 64-bit numbers, and strings with their length
  }
}

absl::StatusOr<GgufValue> ReadArray(Cursor& in) {
  const uint32_t type = in.Read<uint32_t>();
  const uint64_t count = in.Read<uint64_t>();
  if (type == kArray || type > kF64)
    return InvalidArgument("is an array of type {}, expected strings or numbers", type);
  if (count > in.left() / MinimumSize(type)) return DataLoss("has {} elements, more than the file holds", count);
  if (!in.TakeElements(count)) {
    return InvalidArgument("has {} elements, expected at most {} in all arrays together", count, kMaxElements);
  }
  if (type == kString) {
    GgufStrings strings;
    strings.reserve(count);
    for (uint64_t i = 0; i < count && !in.failed(); ++i) strings.push_back(in.ReadString());
    return strings;
  }
  if (IsInteger(type)) {
    GgufIntegers integers;
    integers.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      IHA_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(in, type));
      integers.push_back(value);
    }
    return integers;
  }
  GgufReals reals;
  reals.reserve(count);
  for (uint64_t i = 0; i < count; ++i) reals.push_back(type == kF32 ? in.Read<float>() : in.Read<double>());
  return reals;
}

absl::StatusOr<GgufValue> ReadValue(Cursor& in) {
  const uint32_t type = in.Read<uint32_t>();
  if (type == kArray) return ReadArray(in);
  if (type == kString) return in.ReadString();
  if (type == kBool) return in.Read<uint8_t>() != 0;
  if (type == kF32) return GgufF32{in.Read<float>()};
  if (type == kF64) return in.Read<double>();
  if (!IsInteger(type)) return InvalidArgument("has value type {}, expected one of 0 to 12", type);
  IHA_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(in, type));
  return value;
}

struct TensorInfo {
  std::string name;
  GgufTensor tensor;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

absl::StatusOr<TensorInfo> ReadTensorInfo(Cursor& in) {
  TensorInfo info;
  info.name = std::string(in.ReadString());
  const uint32_t dimensions = in.Read<uint32_t>();
  if (dimensions > kMaxDimensions) {
    return InvalidArgument("tensor {}: {} dimensions, expected at most {}", Shown(info.name), dimensions,
                           kMaxDimensions);
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint64_t size = in.Read<uint64_t>();
    if (size > uint64_t{INT64_MAX} || __builtin_mul_overflow(elements, size, &elements)) {
      return InvalidArgument("tensor {}: its shape overflows 64 bits", Shown(info.name));
    }
    info.tensor.shape.insert(info.tensor.shape.begin(), static_cast<int64_t>(size));
  }
  info.tensor.type = GgmlTypeOf(in.Read<uint32_t>());
  info.offset = in.Read<uint64_t>();
  const GgmlTypeRow* row = info.tensor.type.row;
  if (row == nullptr) return info;  // the importer names it; other tensors can still be listed
  const uint64_t columns = info.tensor.shape.empty() ? 1 : static_cast<uint64_t>(info.tensor.shape.back());
  if (columns % static_cast<uint64_t>(row->block_elements) != 0) {
    return InvalidArgument("tensor {}: rows of {} elements are no whole blocks of {} ({})", Shown(info.name), columns,
                           row->block_elements, row->name);
  }
  if (__builtin_mul_overflow(elements / static_cast<uint64_t>(row->block_elements),
                             static_cast<uint64_t>(row->block_bytes), &info.bytes)) {
    return InvalidArgument("tensor {}: its size overflows 64 bits", Shown(info.name));
  }
  return info;
}

// Writers put one tensor after another. Ones that share bytes would let a small file ask for a large checkpoint.
absl::Status CheckApart(std::vector<TensorInfo> infos) {
  std::sort(infos.begin(), infos.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  for (size_t i = 1; i < infos.size(); ++i) {
    const TensorInfo &before = infos[i - 1], &info = infos[i];
    if (info.offset < before.offset + before.bytes) {
      return InvalidArgument("tensor {}: begins at byte {} of the data, but tensor {} ends at {}: they overlap",
                             Shown(info.name), info.offset, Shown(before.name), before.offset + before.bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  IHA_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  GgufFile result(std::move(file));
  if (absl::Status status = result.Parse(); !status.ok()) return Annotate(status, path);
  return result;
}

absl::Status GgufFile::Parse() {
  Cursor in(file_.bytes());
  if (in.Read<uint32_t>() != 0x46554747) return InvalidArgument("does not begin with GGUF: no GGUF file");  // "GGUF"
  const uint32_t version = in.Read<uint32_t>();
  if (version != 2 && version != 3) {
    return InvalidArgument("GGUF version is {}, expected 2 or 3 (little endian)", version);
  }
  const uint64_t tensor_count = in.Read<uint64_t>(), key_count = in.Read<uint64_t>();
  for (uint64_t i = 0; i < key_count && !in.failed(); ++i) {
    const std::string key(in.ReadString());
    absl::StatusOr<GgufValue> value = ReadValue(in);
    if (!value.ok())
      return absl::Status(value.status().code(),
                          fmt::format("key {} {}", Shown(key), std::string(value.status().message())));
    if (!in.failed() && !metadata_.emplace(key, *std::move(value)).second) {
      return InvalidArgument("key {} is there twice", Shown(key));
    }
  }
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < tensor_count && !in.failed(); ++i) {
    IHA_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo(in));
    infos.push_back(std::move(info));
  }
  if (in.failed())
    return DataLoss("ends inside its header ({} bytes): truncated; fetch it again", file_.bytes().size());

  IHA_ASSIGN_OR_RETURN(const int64_t alignment, Integer("general.alignment", 32));
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0 || alignment > (1 << 30)) {
    return InvalidArgument("general.alignment is {}, expected a power of two", alignment);
  }
  const size_t mask = static_cast<size_t>(alignment) - 1;
  const size_t data_begin = std::min((in.position() + mask) & ~mask, file_.bytes().size());
  const std::span<const std::byte> data = file_.bytes().subspan(data_begin);
  for (TensorInfo& info : infos) {
    if (info.offset % static_cast<uint64_t>(alignment) != 0) {
      return InvalidArgument("tensor {}: offset {} is no multiple of the alignment {}", Shown(info.name), info.offset,
                             alignment);
    }
    if (info.offset > data.size() || info.bytes > data.size() - info.offset) {
      return DataLoss("tensor {}: bytes {} + {} lie past the {} data bytes: truncated; fetch it again",
                      Shown(info.name), info.offset, info.bytes, data.size());
    }
    info.tensor.bytes = data.subspan(info.offset, info.bytes);
    if (!tensors_.emplace(info.name, std::move(info.tensor)).second) {
      return InvalidArgument("tensor {} is there twice", Shown(info.name));
    }
  }
  return CheckApart(std::move(infos));
}

absl::Status GgufFile::OtherType(std::string_view key, std::string_view what) const {
  return InvalidArgument("{}: key {} is no {}", path(), key, what);
}

absl::StatusOr<int64_t> GgufFile::Integer(std::string_view key, std::optional<int64_t> fallback) const {
  if (const int64_t* value = Find<int64_t>(key); value != nullptr) return *value;
  if (fallback.has_value() && !metadata_.contains(key)) return *fallback;
  return InvalidArgument("{}: key {} is missing or no single whole number", path(), key);
}

absl::StatusOr<float> GgufFile::Real(std::string_view key, std::optional<float> fallback) const {
  if (const GgufF32* value = Find<GgufF32>(key); value != nullptr) {
    if (std::isfinite(value->value)) return value->value;
    return InvalidArgument("{}: {} is {}, expected a finite number", path(), key, value->value);
  }
  if (fallback.has_value() && !metadata_.contains(key)) return *fallback;
  return InvalidArgument("{}: key {} is missing or no float32", path(), key);
}

absl::StatusOr<std::string_view> GgufFile::Text(std::string_view key) const {
  if (const std::string_view* value = Find<std::string_view>(key); value != nullptr) return *value;
  return InvalidArgument("{}: key {} is missing or no string", path(), key);
}

}  // namespace iha::checkpoint
