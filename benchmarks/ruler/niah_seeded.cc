#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "benchmarks/ruler/niah.h"
#include "benchmarks/ruler/text.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

class NiahSeededRows : public SeededRows {
 public:
  NiahSeededRows(const TaskContext& context, std::shared_ptr<const KeyList> keys, std::optional<Haystack> essays)
      : context_(context),
        keys_(std::move(keys)),
        essays_(std::move(essays)),
        noise_(context_.counter.Measure(kNoiseLine)) {}

  absl::StatusOr<Sample> Row(int64_t, PythonRandom random, TokenCounter& counter) const override {
    Draw draw{
        .counter = counter, .random = random, .taken = {}, .needles = {}, .query = {}, .outputs = {}, .lines = {}};
    DrawNeedles(draw);
    IHA_ASSIGN_OR_RETURN(const int64_t size, FindSize(draw));
    return Build(draw, size, /*as_row=*/true);
  }

 private:
  struct Line {
    std::string text;
    CountedPiece piece;
  };
  struct Draw {
    TokenCounter& counter;
    PythonRandom random;
    std::unordered_set<std::string> taken;  // keys and values
    std::vector<std::string> needles;
    std::string query;
    std::vector<std::string> outputs;
    std::vector<std::unique_ptr<Line>> lines;  // of a haystack of needles
  };

  const NiahParameters& parameters() const { return context_.task->niah; }

  // A key or value that the row does not have yet.
  template <class DrawOne>
  static std::string New(Draw& draw, DrawOne draw_one) {
    std::string text = draw_one();
    while (!draw.taken.insert(text).second) text = draw_one();
    return text;
  }
  std::string NewKey(Draw& draw) const {
    return New(draw, [&] { return DrawKey(keys_.get(), draw.random); });
  }
  std::string NewValue(Draw& draw) const {
    return New(draw, [&] { return DrawValue(parameters(), draw.random); });
  }

  void DrawNeedles(Draw& draw) const {
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values;
    for (int k = 0; k < parameters().keys; ++k) {
      keys.push_back(NewKey(draw));
      values.emplace_back();
      for (int v = 0; v < parameters().values; ++v) {
        values.back().push_back(NewValue(draw));
        draw.needles.push_back(NeedleLine(parameters(), keys.back(), values.back().back()));
      }
    }
    draw.random.Shuffle(draw.needles);
    std::vector<std::string> queried;
    for (const int32_t k : draw.random.Sample(parameters().keys, parameters().queries)) {
      queried.push_back(keys[static_cast<size_t>(k)]);
      const std::vector<std::string>& of_key = values[static_cast<size_t>(k)];
      draw.outputs.insert(draw.outputs.end(), of_key.begin(), of_key.end());
    }
    draw.query = QueryText(queried);
  }

  absl::StatusOr<int64_t> FindSize(Draw& draw) const {
    const auto tokens_of = [&](int64_t size) { return Build(draw, size, /*as_row=*/false).tokens; };
    if (essays_.has_value()) {
      return LargestSize(context_, 1, std::min(context_.length, essays_->words()), "words", tokens_of);
    }
    const int64_t most = parameters().haystack == HaystackKind::kNeedle ? DrawLines(draw) : context_.length;
    return LargestSize(context_, static_cast<int64_t>(draw.needles.size()), most, "lines", tokens_of);
  }

  // Lines of other needles, as many as could ever fit; how many.
  int64_t DrawLines(Draw& draw) const {
    CountedText text(draw.counter);
    while (text.Tokens() <= context_.length) {
      const std::string key = NewKey(draw);
      auto line = std::make_unique<Line>();
      line->text = NeedleLine(parameters(), key, NewValue(draw));
      line->piece = draw.counter.Measure(line->text);
      text.Append(line->piece);
      text.Append("\n");
      draw.lines.push_back(std::move(line));
    }
    return static_cast<int64_t>(draw.lines.size());
  }

  // What depends on the size is drawn from a copy, so that equal sizes give equal samples.
  Sample Build(const Draw& draw, int64_t size, bool as_row) const {
    PythonRandom random = draw.random;
    const auto count = static_cast<int32_t>(draw.needles.size());
    CountedText text(draw.counter);
    text.Append(context_.parts.head);
    if (essays_.has_value()) {
      AppendEssay(*essays_, size, draw.needles, random.Sample(static_cast<int32_t>(std::size(kDepths)), count), text);
    } else {
      std::vector<int32_t> at = random.Sample(static_cast<int32_t>(size), count);
      std::sort(at.rbegin(), at.rend());
      const auto line = [&](int64_t j) {
        return draw.lines.empty() ? noise_ : draw.lines[static_cast<size_t>(j)]->piece;
      };
      AppendLines(size, draw.needles, at, line, text);
    }
    text.Append(Replaced(context_.parts.tail, "{query}", draw.query));
    return FinishNiah(context_, std::move(text), draw.outputs, as_row);
  }

  TaskContext context_;
  const std::shared_ptr<const KeyList> keys_;  // null: keys are uuids
  const std::optional<Haystack> essays_;       // counted as far as any row may go
  const CountedPiece noise_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SeededRows>> NiahSeeded(const TaskContext& context, Texts& texts,
                                                       std::shared_ptr<const Haystack> essays) {
  IHA_ASSIGN_OR_RETURN(std::shared_ptr<const KeyList> keys, KeysOf(*context.task, texts));
  std::optional<Haystack> counted;
  if (context.task->needs_essays()) {
    // A word is a token at least.
    counted = context.length > essays->words() ? essays->Repeated(context.length) : *essays;
    TokenCounter counter = context.counter;
    counted->CountTo(counter, context.length);
  }
  return std::make_unique<NiahSeededRows>(context, std::move(keys), std::move(counted));
}

}  // namespace iha::benchmarks::ruler
