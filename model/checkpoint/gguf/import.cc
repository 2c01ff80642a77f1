#include "model/checkpoint/gguf/import.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/digest.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/gguf/gguf_file.h"
#include "model/checkpoint/gguf/import_parts.h"
#include "model/checkpoint/temporary_folder.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

constexpr int kImporterVersion = 2;  // raise when the same file would give other bytes
constexpr const char* kRecord = "import.json";
constexpr int64_t kChunkElements = 1 << 18;

// One tensor on its way: GGUF's name -> Hugging Face's, how many heads' rows must be put back in order (0: none), and
// what the converter has added.
struct Move {
  std::string from;
  TensorPlan to;
  int64_t permuted_heads = 0;
  float minus = 0;  // subtracted from each value, in float as transformers' own importer does
};

// F32, F16 and BF16 are names of both formats; none for what must be dequantised.
std::optional<DType> OwnType(const GgufTensor& tensor) { return ParseDType(NameOf(tensor.type)); }

absl::StatusOr<std::vector<Move>> PlanMoves(const GgufFile& file, const GgufModel& model, DType dtype) {
  std::vector<Move> moves;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name == kRopeFactors) continue;  // config.json says the same
    Move move{name, {HuggingFaceName(*model.architecture, name), dtype, tensor.shape}};
    if (move.to.name.empty()) {
      return InvalidArgument("{}: tensor {} has no place in a {} checkpoint; import the original checkpoint",
                             file.path(), TerminalSafe(name, 200), model.architecture->name);
    }
    if (tensor.type.row == nullptr) {
      return InvalidArgument("{}: tensor {} has type {} (number {}), which is not supported (expected one of: {})",
                             file.path(), TerminalSafe(name, 200), NameOf(tensor.type), tensor.type.id,
                             SupportedGgmlTypes());
    }
    if (model.architecture->permuted_qk) {
      if (move.to.name.find("self_attn.q_proj") != std::string::npos) move.permuted_heads = model.num_heads;
      if (move.to.name.find("self_attn.k_proj") != std::string::npos) move.permuted_heads = model.num_kv_heads;
    }
    if (model.architecture->gemma && name.ends_with("norm.weight")) {
      move.minus = 1.0F;
    } else if (dtype == DType::kF32) {
      move.to.dtype = OwnType(tensor).value_or(dtype);  // 16 bits stay 16 bits where nothing is computed
    }
    if (move.permuted_heads != 0 &&
        (tensor.shape.empty() || tensor.shape[0] != move.permuted_heads * model.head_dim || model.head_dim % 2 != 0 ||
         (tensor.shape.size() == 1 && tensor.type.row->block_elements != 1))) {
      return InvalidArgument("{}: tensor {} has shape {} ({}), expected {} heads of {} rows, biases unquantised",
                             file.path(), name, ShapeText(tensor.shape), NameOf(tensor.type), move.permuted_heads,
                             model.head_dim);
    }
    moves.push_back(std::move(move));
  }
  // By name, wider types first: every tensor is aligned to its element.
  std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::pair(-SizeOf(a.to.dtype), a.to.name) < std::pair(-SizeOf(b.to.dtype), b.to.name);
  });
  return moves;
}

// Row of the GGUF tensor that holds row `row` of the Hugging Face one: GGUF interleaves the two halves of each head.
int64_t SourceRow(int64_t row, int64_t rows, int64_t heads) {
  if (heads == 0) return row;
  const int64_t head_rows = rows / heads, half = head_rows / 2;
  const int64_t head = row / head_rows, within = row % head_rows;
  return head * head_rows + 2 * (within % half) + within / half;
}

absl::Status Append(std::span<const float> values, DType dtype, SafetensorsWriter& writer) {
  if (dtype == DType::kF32) return writer.Append(std::as_bytes(values));
  std::vector<uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), F32ToBF16);
  return writer.Append(std::as_bytes(std::span(rounded)));
}

// The bytes as they are, rows in Hugging Face's order.
absl::Status CopyTensor(const GgufTensor& tensor, const Move& move, SafetensorsWriter& writer) {
  if (move.permuted_heads == 0) return writer.Append(tensor.bytes);
  const int64_t rows = tensor.shape[0];
  const size_t row_bytes = tensor.bytes.size() / static_cast<size_t>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const auto source = static_cast<size_t>(SourceRow(row, rows, move.permuted_heads));
    IHA_RETURN_IF_ERROR(writer.Append(tensor.bytes.subspan(source * row_bytes, row_bytes)));
  }
  return absl::OkStatus();
}

// Dequantises row by row, in pieces of about a megabyte.
absl::Status StreamTensor(const GgufTensor& tensor, const Move& move, SafetensorsWriter& writer) {
  if (tensor.bytes.empty()) return absl::OkStatus();
  if (OwnType(tensor) == move.to.dtype && move.minus == 0) return CopyTensor(tensor, move, writer);
  const GgmlTypeRow& type = *tensor.type.row;
  const int64_t elements = static_cast<int64_t>(tensor.bytes.size()) / type.block_bytes * type.block_elements;
  const int64_t rows = move.permuted_heads != 0 || tensor.shape.size() > 1 ? tensor.shape[0] : 1;
  const int64_t columns = elements / rows;
  const int64_t row_bytes = static_cast<int64_t>(tensor.bytes.size()) / rows;
  const int64_t rows_at_once = std::max<int64_t>(1, kChunkElements / columns);
  std::vector<float> values;
  for (int64_t begin = 0; begin < rows; begin += rows_at_once) {
    const int64_t end = std::min(rows, begin + rows_at_once);
    values.resize(static_cast<size_t>((end - begin) * columns));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t source = SourceRow(row, rows, move.permuted_heads);
      Dequantise(tensor.type,
                 tensor.bytes.subspan(static_cast<size_t>(source * row_bytes), static_cast<size_t>(row_bytes)),
                 std::span(values).subspan(static_cast<size_t>((row - begin) * columns), static_cast<size_t>(columns)));
    }
    if (move.minus != 0) {
      for (float& value : values) value -= move.minus;
    }
    IHA_RETURN_IF_ERROR(Append(values, move.to.dtype, writer));
  }
  return absl::OkStatus();
}

std::string RecordText(const Digest& source, DType dtype) {
  ordered_json record;
  record["importer"] = kImporterVersion;
  record["source_sha256"] = source.Hex();
  record["dtype"] = NameOf(dtype);
  return record.dump(2) + "\n";
}

// Fills `folder`, which exists and is empty.
absl::Status WriteFolder(const GgufFile& file, const GgufModel& model, DType dtype, const std::string& record,
                         const std::string& folder, const std::atomic<bool>* stop) {
  IHA_ASSIGN_OR_RETURN(std::vector<TextFile> texts, ConfigFiles(file, model, dtype));
  IHA_ASSIGN_OR_RETURN(std::vector<TextFile> tokenizer, TokenizerFiles(file, model));
  IHA_ASSIGN_OR_RETURN(const std::vector<Move> moves, PlanMoves(file, model, dtype));
  std::move(tokenizer.begin(), tokenizer.end(), std::back_inserter(texts));
  texts.push_back({kRecord, record});
  for (const TextFile& text : texts) IHA_RETURN_IF_ERROR(WriteFileAtomic(folder + "/" + text.name, text.contents));

  std::vector<TensorPlan> plan;
  for (const Move& move : moves) plan.push_back(move.to);
  IHA_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                       SafetensorsWriter::Create(folder + "/model.safetensors", plan, {{"format", "pt"}}));
  writer.StopWhen(stop);
  for (const Move& move : moves) {
    IHA_RETURN_IF_ERROR(StreamTensor(file.tensors().find(move.from)->second, move, writer));
  }
  return writer.Finish();
}

absl::StatusOr<GgufImport> Describe(const std::string& folder, bool already_there) {
  IHA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  return GgufImport{already_there, static_cast<int64_t>(checkpoint.tensors().size()), checkpoint.parameters()};
}

// The same error without the name of the temporary folder, which is gone when it is read.
absl::Status WithoutFolder(const absl::Status& status, const std::string& folder) {
  std::string_view message(status.message().data(), status.message().size());
  if (!message.starts_with(folder)) return status;
  message.remove_prefix(folder.size());
  message.remove_prefix(std::min(message.find_first_not_of("/: "), message.size()));
  return absl::Status(status.code(), std::string(message));
}

}  // namespace

absl::StatusOr<GgufImport> ImportGguf(const std::string& gguf_path, const std::string& out, DType dtype,
                                      const std::atomic<bool>* stop) {
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    return InvalidArgument("dtype is {}, expected f32 or bf16", NameOf(dtype));
  }
  IHA_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(gguf_path));
  IHA_ASSIGN_OR_RETURN(const GgufModel model, ReadGgufModel(file));
  const std::span<const std::byte> bytes = file.bytes();
  const std::string record = RecordText(Sha256Of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), dtype);

  const std::string target = NormalFolder(out);
  if (IsTaken(target)) {
    const absl::StatusOr<std::string> found = ReadRegularFile(fmt::format("{}/{}", target, kRecord));
    if (found.ok() && *found == record) return Describe(target, true);
    return AlreadyExists("{}: exists and is not this import of {}: remove it or choose another --out", target,
                         gguf_path);
  }
  IHA_ASSIGN_OR_RETURN(TemporaryFolder temporary, TemporaryFolder::Create(target));
  IHA_RETURN_IF_ERROR(WriteFolder(file, model, dtype, record, temporary.path(), stop));
  const absl::StatusOr<GgufImport> result = Describe(temporary.path(), false);
  if (!result.ok()) return Annotate(WithoutFolder(result.status(), temporary.path()), gguf_path);
  IHA_RETURN_IF_ERROR(temporary.Commit());
  return result;
}

}  // namespace iha::checkpoint
