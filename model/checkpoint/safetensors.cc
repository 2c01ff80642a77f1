#include "model/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "model/checkpoint/json_check.h"
#include "model/checkpoint/json_fields.h"
#include "model/checkpoint/temporary_folder.h"

static_assert(std::endian::native == std::endian::little, "tensor bytes are read as stored");

namespace iha::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // limit of the format's own library
constexpr size_t kMaxDepth = 3;               // name -> entry -> shape list
constexpr size_t kMaxDimensions = 64;         // no library goes further
constexpr const char* kGetAgain = "the file is damaged or was made by a faulty writer; fetch it again";

// Bytes of a tensor of this shape, or nullopt if it does not fit 63 bits or a dimension is no whole number >= 0.
std::optional<int64_t> BytesOf(DType dtype, const json& shape_json, std::vector<int64_t>* shape) {
  int64_t bytes = SizeOf(dtype);
  for (const json& item : shape_json) {
    if (!item.is_number_unsigned()) return std::nullopt;
    const uint64_t size = item.get<uint64_t>();
    if (size > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    shape->push_back(static_cast<int64_t>(size));
    if (__builtin_mul_overflow(bytes, static_cast<int64_t>(size), &bytes)) return std::nullopt;
  }
  return bytes;
}

// One entry of the header. `data` is the data section of the file.
absl::StatusOr<TensorView> ParseEntry(const std::string& where, const json& entry, std::span<const std::byte> data) {
  if (!entry.is_object()) return InvalidArgument("{}: header entry is no object; {}", where, kGetAgain);
  const auto dtype_json = entry.find("dtype"), shape = entry.find("shape"), offsets = entry.find("data_offsets");
  if (dtype_json == entry.end() || !dtype_json->is_string()) {
    return InvalidArgument("{}: dtype is missing or no string; {}", where, kGetAgain);
  }
  const std::string dtype_name = dtype_json->get<std::string>();
  const std::optional<DType> dtype = ParseDType(dtype_name);
  if (!dtype.has_value()) {
    return InvalidArgument(
        "{}: dtype {} is unknown, expected F32, F16, BF16, F64, I64, I32, I8, U8 or BOOL; convert the checkpoint",
        where, Shown(dtype_name));
  }
  if (shape == entry.end() || !shape->is_array()) {
    return InvalidArgument("{}: shape is missing or no list; {}", where, kGetAgain);
  }
  TensorView view;
  view.dtype = *dtype;
  const std::optional<int64_t> bytes = BytesOf(*dtype, *shape, &view.shape);
  if (!bytes.has_value()) {
    return InvalidArgument("{}: shape {} is no list of sizes whose product fits 63 bits; {}", where, ShownJson(*shape),
                           kGetAgain);
  }
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    return InvalidArgument("{}: data_offsets is missing or no pair of whole numbers; {}", where, kGetAgain);
  }
  const uint64_t begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
  if (begin > end) return InvalidArgument("{}: data_offsets [{}, {}] run backwards; {}", where, begin, end, kGetAgain);
  if (end > data.size()) {
    return DataLoss("{}: data_offsets end at {}, past the {} data bytes of the file: it is truncated; fetch it again",
                    where, end, data.size());
  }
  if (end - begin != static_cast<uint64_t>(*bytes)) {
    return InvalidArgument("{}: data_offsets span {} bytes, but dtype {} and shape {} take {}; {}", where, end - begin,
                           dtype_name, ShapeText(view.shape), *bytes, kGetAgain);
  }
  view.bytes = data.subspan(begin, end - begin);
  return view;
}

}  // namespace

absl::StatusOr<Safetensors> Safetensors::Open(const std::string& path) {
  IHA_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  Safetensors result(std::move(file));
  IHA_RETURN_IF_ERROR(result.Parse());
  return result;
}

const TensorView* Safetensors::Find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

absl::Status Safetensors::Parse() {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < 8) {
    return DataLoss("{}: {} bytes are too small for a safetensors file: it is truncated; fetch it again", path(),
                    bytes.size());
  }
  uint64_t header_size;
  std::memcpy(&header_size, bytes.data(), 8);
  if (header_size > kMaxHeader || header_size > bytes.size() - 8) {
    return DataLoss(
        "{}: header length {} is beyond the end of the file ({} bytes) or the limit of {}: truncated, or no "
        "safetensors "
        "file; fetch it again",
        path(), header_size, bytes.size(), kMaxHeader);
  }
  const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  const std::string_view header_text(text, header_size);
  // Before it is parsed: what is too deep or too long for a header costs no memory.
  IHA_RETURN_IF_ERROR(CheckJson(header_text, path() + ": header", {.depth = kMaxDepth, .list = kMaxDimensions}));
  const json header = json::parse(header_text, nullptr, false);
  if (!header.is_object()) return InvalidArgument("{}: header is no JSON object; {}", path(), kGetAgain);

  const std::span<const std::byte> data = bytes.subspan(8 + header_size);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return InvalidArgument("{}: __metadata__ is no object; {}", path(), kGetAgain);
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string())
          return InvalidArgument("{}: __metadata__ {} is no string; {}", path(), Shown(key), kGetAgain);
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    IHA_ASSIGN_OR_RETURN(TensorView view, ParseEntry(fmt::format("{}: tensor {}", path(), Shown(name)), entry, data));
    tensors_.emplace(name, std::move(view));
  }
  return CheckLayout(data.size());
}

// Sorted by position, the tensors must tile the data section.
absl::Status Safetensors::CheckLayout(size_t data_size) const {
  std::vector<std::pair<const std::string*, std::span<const std::byte>>> order;
  order.reserve(tensors_.size());
  for (const auto& [name, view] : tensors_) order.emplace_back(&name, view.bytes);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.data(), a.second.size()) < std::pair(b.second.data(), b.second.size());
  });
  const std::byte* data = file_.bytes().data() + (file_.bytes().size() - data_size);
  size_t position = 0;
  const std::string* previous = nullptr;
  for (const auto& [name, view] : order) {
    const size_t begin = static_cast<size_t>(view.data() - data);
    if (begin < position) {
      return InvalidArgument("{}: tensors {} and {} overlap: {} begins at byte {}, expected {}; {}", path(),
                             Shown(*previous), Shown(*name), Shown(*name), begin, position, kGetAgain);
    }
    if (begin > position) {
      return InvalidArgument("{}: tensor {} begins at byte {}, expected {} (tensors must be contiguous); {}", path(),
                             Shown(*name), begin, position, kGetAgain);
    }
    position = begin + view.size();
    previous = name;
  }
  if (position != data_size) {
    return InvalidArgument("{}: {} bytes after the last tensor, expected none; {}", path(), data_size - position,
                           kGetAgain);
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                            const std::vector<TensorPlan>& plan,
                                                            const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const TensorPlan& tensor : plan) {
    int64_t bytes = SizeOf(tensor.dtype);
    for (const int64_t size : tensor.shape) bytes *= size;
    if (header.contains(tensor.name)) return Internal("{}: tensor {} planned twice", path, tensor.name);
    header[tensor.name] = {
        {"dtype", NameOf(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');  // data begins at a multiple of 8, as the format's own writer does
  // The rename would put a file in the place of a device or a pipe.
  struct stat old = {};
  if (::stat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) {
    return InvalidArgument("{}: is not a regular file, expected a file to replace or a new name", path);
  }
  RemoveAbandoned(path);
  std::string temporary;
  UniqueFd fd;
  for (int n = 0; !fd.valid(); ++n) {
    temporary = TemporaryName(path, n);
    fd = UniqueFd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd.valid() && errno != EEXIST) return ErrnoStatus(temporary, "cannot create", errno);
    if (fd.valid() && !ClaimTemporary(temporary, fd)) fd.Close();
  }
  SafetensorsWriter writer(path, temporary, std::move(fd), offset);
  const uint64_t size = text.size();
  IHA_RETURN_IF_ERROR(writer.Write(reinterpret_cast<const char*>(&size), 8));
  IHA_RETURN_IF_ERROR(writer.Write(text.data(), text.size()));
  return writer;
}

SafetensorsWriter::SafetensorsWriter(std::string path, std::string temporary, UniqueFd fd, int64_t remaining)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)), remaining_(remaining) {}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::move(other.fd_)),
      remaining_(other.remaining_),
      stop_(other.stop_) {}

SafetensorsWriter::~SafetensorsWriter() { Abandon(); }

void SafetensorsWriter::Abandon() {
  if (!fd_.valid()) return;
  ::unlink(temporary_.c_str());  // before the lock goes
  fd_.Close();
}

absl::Status SafetensorsWriter::Write(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd_.get(), data, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      Abandon();
      if (error == EFAULT) {  // mapped bytes that are no longer there: where a touch would be SIGBUS
        return DataLoss(
            "{}: cannot write (nothing was left behind): what is copied lost bytes while it was read; run "
            "again with a whole file that nothing writes to",
            temporary_);
      }
      return ErrnoStatus(temporary_, "cannot write (nothing was left behind)", error);
    }
    data += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (!fd_.valid()) return Internal("{}: append after the end", path_);
  if (stop_ != nullptr && *stop_) {
    return absl::CancelledError("interrupted; nothing was left behind, run the same command again");
  }
  if (static_cast<int64_t>(bytes.size()) > remaining_) return Internal("{}: more bytes than planned", path_);
  remaining_ -= static_cast<int64_t>(bytes.size());
  return Write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::Status SafetensorsWriter::Finish() {
  if (!fd_.valid()) return Internal("{}: finished twice", path_);
  if (remaining_ != 0) return Internal("{}: {} planned bytes were not appended", path_, remaining_);
  if (::fsync(fd_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    Abandon();
    return ErrnoStatus(path_, "cannot finish (nothing was left behind)", error);
  }
  fd_.Close();
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int folder_fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {  // the rename itself must survive a power cut too
    ::fsync(folder_fd);
    ::close(folder_fd);
  }
  return absl::OkStatus();
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<TensorPlan> plan;
  plan.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) plan.push_back(tensor.plan);
  IHA_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, plan, metadata));
  for (const NamedTensor& tensor : tensors) IHA_RETURN_IF_ERROR(writer.Append(tensor.bytes));
  return writer.Finish();
}

}  // namespace iha::checkpoint
