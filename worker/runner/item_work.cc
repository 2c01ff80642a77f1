#include "worker/runner/item_work.h"

#include "common/errors.h"
#include "common/status_macros.h"
#include "worker/engine/positions.h"

namespace iha::worker {
bool ItemWork::complete() const {
  const auto end = samples.begin() + static_cast<std::ptrdiff_t>(wanted);
  return std::all_of(samples.begin(), end, [](const auto& sample) { return sample.has_value(); });
}

void ItemWork::AddScore(size_t choice, const scoring::ChoiceScore& score) {
  scores[choice] = score;
  if (!std::all_of(scores.begin(), scores.end(), [](const auto& known) { return known.has_value(); })) return;
  Generation all{.key = keys[0],
                 .tokens = {},
                 .text = "",
                 .finish = FinishReason::kEos,
                 .prompt_tokens = static_cast<int32_t>(choices[0].context.size())};
  std::vector<scoring::ChoiceScore> in_order;
  for (size_t c = 0; c < choices.size(); c++) {
    all.tokens.insert(all.tokens.end(), choices[c].tokens.begin(), choices[c].tokens.end());
    in_order.push_back(*scores[c]);
  }
  all.text = scoring::FormatChoiceScores(in_order);
  samples[0] = std::move(all);
  fresh[0] = true;
}

namespace {

bool Fits(const std::vector<int32_t>& prompt, int64_t more, int64_t context_tokens) {
  return engine::PositionsOf(static_cast<int64_t>(prompt.size()), more) <= context_tokens;
}

absl::StatusOr<ItemWork> PrepareChoices(const LeaseGrant& grant, const benchmarks::Prompt& prompt,
                                        const benchmarks::PromptEncoder& encoder, int64_t context_tokens,
                                        int64_t index) {
  ItemWork work;
  work.index = index;
  absl::StatusOr<std::vector<Continuation>> choices = encoder.EncodeChoices(prompt);
  if (!choices.ok()) return Annotate(choices.status(), fmt::format("item {}", index));
  work.choices = *std::move(choices);
  for (const Continuation& choice : work.choices) {
    if (!Fits(choice.context, static_cast<int64_t>(choice.tokens.size()), context_tokens)) {
      work.unscored = Unscored::kPromptTooLong;
    }
  }
  if (work.unscored != Unscored::kScored) return work;
  work.keys = {ScoreKeyOf({.weights = grant.weights,
                           .tokenizer = grant.tokenizer,
                           .numerics_id = grant.job.numerics_id,
                           .choices = work.choices})};
  work.samples.resize(1);
  work.fresh.resize(1);
  work.wanted = 1;
  work.scores.resize(work.choices.size());
  return work;
}

}  // namespace

absl::StatusOr<ItemWork> PrepareItem(const LeaseGrant& grant, const benchmarks::Benchmark& benchmark,
                                     benchmarks::PromptEncoder& encoder, const std::vector<int32_t>& eos,
                                     int64_t context_tokens, int64_t index) {
  const SamplingParams& sampling = grant.job.entry.sampling;
  ItemWork work;
  work.index = index;
  work.unscored = benchmark.Missing(index);
  if (work.unscored != Unscored::kScored) return work;
  const benchmarks::Prompt prompt = benchmark.Render(index);
  if (!prompt.choices.empty()) return PrepareChoices(grant, prompt, encoder, context_tokens, index);
  work.stops = prompt.stops;
  IHA_ASSIGN_OR_RETURN(work.prompt, encoder.Encode(prompt));
  if (work.prompt.empty()) {
    return FailedPrecondition("item {} of {}: its prompt has no tokens", index, grant.job.benchmark_version);
  }
  if (!Fits(work.prompt, sampling.max_new_tokens, context_tokens)) {
    work.unscored = Unscored::kPromptTooLong;
    return work;
  }
  for (int32_t sample = 0; sample < sampling.samples; sample++) {
    work.keys.push_back(KeyOf({.weights = grant.weights,
                               .tokenizer = grant.tokenizer,
                               .numerics_id = grant.job.numerics_id,
                               .prompt = work.prompt,
                               .sampling = sampling,
                               .stops = work.stops,
                               .eos = eos,
                               .sample_index = sample}));
  }
  work.samples.resize(work.keys.size());
  work.fresh.resize(work.keys.size());
  IHA_ASSIGN_OR_RETURN(const int64_t wanted, benchmarks::SamplesWanted(grant.job.entry, {}));
  work.wanted = static_cast<size_t>(wanted);
  return work;
}

namespace {

// Fills in the grades of all samples and the values.
absl::Status GradeItem(const JobSpec& job, const benchmarks::Benchmark& benchmark,
                       const std::vector<std::string>& texts, ItemResult& result) {
  const std::vector<std::vector<SampleGrade>> grades =
      benchmark.Grade(result.index, texts, benchmarks::BaseMetrics(benchmark.info(), job.entry.metrics));
  for (size_t s = 0; s < result.samples.size(); s++) result.samples[s].grades = grades[s];
  IHA_ASSIGN_OR_RETURN(result.values, benchmarks::EntryValues(job.entry, grades));
  return absl::OkStatus();
}

}  // namespace

absl::Status WantUntilSettled(const JobSpec& job, const benchmarks::Benchmark& benchmark, ItemWork& work) {
  if (!job.entry.stop_settled_votes || work.unscored != Unscored::kScored) return absl::OkStatus();
  const std::vector<benchmarks::MetricInfo> metrics = benchmarks::BaseMetrics(benchmark.info(), job.entry.metrics);
  while (work.complete()) {
    std::vector<std::string> texts;
    for (size_t s = 0; s < work.wanted; s++) texts.push_back(work.samples[s]->text);
    IHA_ASSIGN_OR_RETURN(const int64_t wanted,
                         benchmarks::SamplesWanted(job.entry, benchmark.Grade(work.index, texts, metrics)));
    if (static_cast<size_t>(wanted) == work.wanted) break;
    work.wanted = static_cast<size_t>(wanted);
  }
  if (!work.complete()) return absl::OkStatus();
  work.keys.resize(work.wanted);
  work.samples.resize(work.wanted);
  work.fresh.resize(work.wanted);
  return absl::OkStatus();
}

absl::Status RegradeFrom(const JobSpec& job, const benchmarks::Benchmark& benchmark,
                         const std::vector<Generation>& stored, std::vector<std::string> texts, ItemResult& result) {
  for (size_t s = 0; s < result.samples.size(); s++) {
    const auto of_sample = [&](const Generation& generation) { return generation.key == result.samples[s].generation; };
    const auto at = std::find_if(stored.begin(), stored.end(), of_sample);
    if (at != stored.end()) texts[s] = at->text;
  }
  IHA_RETURN_IF_ERROR(GradeItem(job, benchmark, texts, result));
  std::vector<std::vector<SampleGrade>> grades;
  for (const SampleResult& sample : result.samples) grades.push_back(sample.grades);
  IHA_ASSIGN_OR_RETURN(const int64_t wanted, benchmarks::SamplesWanted(job.entry, grades));
  if (static_cast<size_t>(wanted) == result.samples.size()) return absl::OkStatus();
  return absl::OutOfRangeError(
      fmt::format("item {}: by texts that were stored before, its votes take {} samples; it has {}", result.index,
                  wanted, result.samples.size()));
}

absl::StatusOr<ItemResult> FinishItem(const JobSpec& job, const benchmarks::Benchmark& benchmark,
                                      const ItemWork& work) {
  ItemResult result{.index = work.index,
                    .item_id = benchmark.ItemId(work.index),
                    .unscored = Unscored::kScored,
                    .samples = {},
                    .values = {}};
  if (work.unscored != Unscored::kScored) {
    result.unscored = work.unscored;
    for (const std::string& metric : job.entry.metrics) {
      result.values.push_back(
          {.metric = metric, .unscored = result.unscored, .score = {}, .winner = "", .tie = {}, .invalid = 0});
    }
    return result;
  }
  std::vector<std::string> texts;
  for (const std::optional<Generation>& generation : work.samples) {
    result.samples.push_back({.generation = generation->key, .grades = {}});
    texts.push_back(generation->text);
  }
  IHA_RETURN_IF_ERROR(GradeItem(job, benchmark, texts, result));
  return result;
}

}  // namespace iha::worker
