#include <algorithm>

#include "benchmarks/ruler/qa.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

// Documents that are tried, one by one, in what the first that does not fit leaves free.
constexpr size_t kFillTries = 64;

class QaSeededRows : public SeededRows {
 public:
  QaSeededRows(const TaskContext& context, std::shared_ptr<const QaData> data)
      : context_(context), data_(std::move(data)) {
    for (const std::string& document : data_->documents) pieces_.push_back(context_.counter.Measure(document));
  }

  absl::StatusOr<Sample> Row(int64_t number, PythonRandom random, TokenCounter& counter) const override {
    if (number >= static_cast<int64_t>(data_->questions.size())) {
      return absl::OutOfRangeError(NoSuchQuestion(*data_, number));
    }
    const QaQuestion& question = data_->questions[static_cast<size_t>(number)];
    std::vector<int32_t> ids = question.own;
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const auto own = static_cast<int64_t>(ids.size());
    const std::vector<int32_t> others = ShuffledOthers(ids, random);
    ids.insert(ids.end(), others.begin(), others.end());
    const auto build = [&](const std::vector<int32_t>& chosen) { return Build(question, chosen, random, counter); };
    const auto first = [&](int64_t count) { return std::vector<int32_t>(ids.begin(), ids.begin() + count); };
    IHA_ASSIGN_OR_RETURN(const int64_t count, LargestSize(context_, own, static_cast<int64_t>(ids.size()), "documents",
                                                          [&](int64_t size) { return build(first(size)).tokens; }));
    const int64_t room = context_.length - context_.task->tokens_to_generate - context_.reserved;
    std::vector<int32_t> chosen = first(count);
    Sample best = build(chosen);
    const size_t end = std::min(ids.size(), static_cast<size_t>(count) + kFillTries);
    for (size_t i = static_cast<size_t>(count); i < end; ++i) {
      chosen.push_back(ids[i]);
      Sample fuller = build(chosen);
      if (fuller.tokens <= room) {
        best = std::move(fuller);
      } else {
        chosen.pop_back();
      }
    }
    return best;
  }

 private:
  // All documents that are not among `own` (ascending), in random order.
  std::vector<int32_t> ShuffledOthers(const std::vector<int32_t>& own, PythonRandom& random) const {
    std::vector<int32_t> others;
    for (int32_t i = 0; i < static_cast<int32_t>(data_->documents.size()); ++i) {
      if (!std::binary_search(own.begin(), own.end(), i)) others.push_back(i);
    }
    random.Shuffle(others);
    return others;
  }

  Sample Build(const QaQuestion& question, std::vector<int32_t> ids, PythonRandom random, TokenCounter& counter) const {
    random.Shuffle(ids);
    std::vector<CountedPiece> documents;
    for (const int32_t id : ids) documents.push_back(pieces_[static_cast<size_t>(id)]);
    return BuildQaPrompt(context_.parts, question, documents, counter);
  }

  TaskContext context_;
  const std::shared_ptr<const QaData> data_;
  std::vector<CountedPiece> pieces_;  // of all documents
};

}  // namespace

absl::StatusOr<std::unique_ptr<SeededRows>> QaSeeded(const TaskContext& context, Texts& texts) {
  IHA_ASSIGN_OR_RETURN(std::shared_ptr<const QaData> data, texts.Qa(context.task->qa));
  return std::make_unique<QaSeededRows>(context, std::move(data));
}

}  // namespace iha::benchmarks::ruler
