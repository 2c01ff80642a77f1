#include "benchmarks/ruler/task_rows.h"

#include <fmt/format.h>

namespace iha::benchmarks::ruler {
namespace {

class SearchedStream : public RowStream {
 public:
  SearchedStream(std::unique_ptr<SearchedSampler> sampler, const Budget& budget, std::string unit)
      : sampler_(std::move(sampler)), budget_(budget), unit_(std::move(unit)) {}

  absl::StatusOr<RowOrEnd> Next() override {
    const int64_t row = next_++;
    if (!size_.has_value()) {
      absl::Status prepared = sampler_->Prepare();
      absl::StatusOr<int64_t> size = prepared.ok() ? FindSize(*sampler_, budget_) : prepared;
      // What ends NVIDIA's script; anything else is a file that cannot be read.
      if (absl::IsInvalidArgument(size.status())) {
        return DeadEndAt(row, fmt::format("the size search fails: {}", std::string(size.status().message())));
      }
      if (!size.ok()) return size.status();
      size_ = *size;
    }
    if (const auto missing = sampler_->BeginRow(row)) return RowOrEnd(RowsEnd{EndKind::kDataExhausted, row, *missing});
    std::variant<Sample, DeadEnd> drawn = DrawRow(*sampler_, budget_, *size_, unit_);
    if (auto* sample = std::get_if<Sample>(&drawn)) return RowOrEnd(std::move(*sample));
    return DeadEndAt(row, std::get<DeadEnd>(drawn).cause);
  }

 private:
  static RowOrEnd DeadEndAt(int64_t row, std::string cause) {
    return RowsEnd{EndKind::kGeneratorDeadEnd, row, std::move(cause)};
  }

  const std::unique_ptr<SearchedSampler> sampler_;
  const Budget budget_;
  const std::string unit_;
  int64_t next_ = 0;
  std::optional<int64_t> size_;
};

}  // namespace

std::unique_ptr<RowStream> MakeSearchedStream(std::unique_ptr<SearchedSampler> sampler, const Budget& budget,
                                              std::string unit) {
  return std::make_unique<SearchedStream>(std::move(sampler), budget, std::move(unit));
}

}  // namespace iha::benchmarks::ruler
