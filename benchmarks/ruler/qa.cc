#include "benchmarks/ruler/qa.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "benchmarks/ruler/text.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

constexpr int64_t kStep = 10;

class QaSampler : public SearchedSampler {
 public:
  QaSampler(const TaskContext& context, std::shared_ptr<const QaData> data)
      : context_(context), data_(std::move(data)), random_(context.seed), pieces_(data_->documents.size()) {}

  std::optional<std::string> BeginRow(int64_t row) override {
    row_ = static_cast<size_t>(row);
    if (row_ < data_->questions.size()) return std::nullopt;
    return NoSuchQuestion(*data_, row);
  }

  // The size search looks at the first question.
  absl::StatusOr<Sample> Probe(int64_t size) override { return Make(data_->questions[0], size); }
  absl::StatusOr<Sample> Attempt(int64_t size) override { return Make(data_->questions[row_], size); }

 private:
  absl::StatusOr<Sample> Make(const QaQuestion& question, int64_t size) {
    IHA_ASSIGN_OR_RETURN(std::vector<int32_t> ids, DrawDocuments(question, size));
    ShuffleBySeed(context_.seed, ids);
    std::vector<CountedPiece> documents;
    for (const int32_t id : ids) documents.push_back(Document(id));
    return BuildQaPrompt(context_.parts, question, documents, context_.counter);
  }

  absl::StatusOr<std::vector<int32_t>> DrawDocuments(const QaQuestion& question, int64_t size) {
    const auto all = static_cast<int64_t>(data_->documents.size());
    const auto own = static_cast<int64_t>(question.own.size()), more = static_cast<int64_t>(question.more.size());
    std::vector<int32_t> ids;
    if (size >= all) {
      for (int64_t i = 0; i < size; ++i) ids.push_back(static_cast<int32_t>(i % all));
      return ids;
    }
    ids = question.own;
    if (size - own > more) {
      ids.insert(ids.end(), question.more.begin(), question.more.end());
      const std::vector<int32_t> others = Others(ids);
      return Sampled(std::move(ids), others, std::max<int64_t>(0, size - own - more));
    }
    return Sampled(std::move(ids), question.more, size - own);
  }

  // `ids` with a sample of `pool` behind it.
  absl::StatusOr<std::vector<int32_t>> Sampled(std::vector<int32_t> ids, const std::vector<int32_t>& pool,
                                               int64_t count) {
    if (count < 0 || count > static_cast<int64_t>(pool.size())) {
      return InvalidArgument("{} documents cannot be drawn from {}: the question's own are {}", count, pool.size(),
                             ids.size());
    }
    for (const int32_t i : random_.Sample(static_cast<int32_t>(pool.size()), static_cast<int32_t>(count))) {
      ids.push_back(pool[static_cast<size_t>(i)]);
    }
    return ids;
  }

  std::vector<int32_t> Others(const std::vector<int32_t>& taken) const {
    const std::unordered_set<int32_t> known(taken.begin(), taken.end());
    std::vector<int32_t> others;
    for (int32_t i = 0; i < static_cast<int32_t>(data_->documents.size()); ++i) {
      if (!known.contains(i)) others.push_back(i);
    }
    return others;
  }

  const CountedPiece& Document(int32_t id) {
    CountedPiece& piece = pieces_[static_cast<size_t>(id)];
    if (piece.text.empty()) piece = context_.counter.Measure(data_->documents[static_cast<size_t>(id)]);
    return piece;
  }

  TaskContext context_;
  const std::shared_ptr<const QaData> data_;
  PythonRandom random_;
  std::vector<CountedPiece> pieces_;  // of documents, measured on first use
  size_t row_ = 0;
};

}  // namespace

Sample BuildQaPrompt(const PromptParts& parts, const QaQuestion& question, const std::vector<CountedPiece>& documents,
                     TokenCounter& counter) {
  CountedText text(counter);
  text.Append(parts.head);
  for (size_t i = 0; i < documents.size(); ++i) {
    text.Append(fmt::format("{}Document {}:\n", i == 0 ? "" : "\n\n", i + 1));
    text.Append(documents[i]);
  }
  text.Append(Replaced(parts.tail, "{query}", question.query));
  Sample sample;
  sample.tokens = text.Tokens();
  sample.text = std::move(text).Take();
  sample.outputs = question.outputs;
  return sample;
}

std::string NoSuchQuestion(const QaData& data, int64_t row) {
  return fmt::format("the data has {} questions, none with number {}", data.questions.size(), row);
}

absl::StatusOr<std::unique_ptr<RowStream>> QaStream(const TaskContext& context, Texts& texts) {
  IHA_ASSIGN_OR_RETURN(std::shared_ptr<const QaData> data, texts.Qa(context.task->qa));
  return MakeSearchedStream(std::make_unique<QaSampler>(context, std::move(data)), context.MakeBudget(kStep),
                            "documents");
}

}  // namespace iha::benchmarks::ruler
