#include "cli/run/dry_run.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "benchmarks/prompt_encoder.h"
#include "cli/run/progress.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "coordinator/planner/planner.h"
#include "coordinator/service/service.h"
#include "model/tokenizer/tokenizer.h"
#include "reports/table.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

bool FillsALength(const benchmarks::BenchmarkInfo& info) { return info.item_tokens > 0; }

// Of one model's tokenizer.
class PromptCounter {
 public:
  static absl::StatusOr<std::unique_ptr<PromptCounter>> Open(const std::string& folder) {
    IHA_ASSIGN_OR_RETURN(auto tokenizer, tokenizer::Tokenizer::Load(folder));
    return std::make_unique<PromptCounter>(std::move(tokenizer));
  }
  explicit PromptCounter(std::shared_ptr<const tokenizer::Tokenizer> tokenizer) : encoder_(std::move(tokenizer)) {}

  absl::StatusOr<int64_t> Count(const benchmarks::Benchmark& benchmark, int64_t items) {
    const benchmarks::BenchmarkInfo& info = benchmark.info();
    // Such items are made by the workers, with their tokenizer. They fill their length, all but a few tokens.
    if (FillsALength(info)) return items * (info.item_tokens - info.default_sampling.max_new_tokens);
    int64_t tokens = 0;
    for (int64_t i = 0; i < items; i++) {
      const benchmarks::Prompt prompt = benchmark.Render(i);
      IHA_ASSIGN_OR_RETURN(const int64_t of_item, prompt.choices.empty() ? CountPrompt(prompt) : CountChoices(prompt));
      tokens += of_item;
    }
    return tokens;
  }

 private:
  absl::StatusOr<int64_t> CountPrompt(const benchmarks::Prompt& prompt) {
    IHA_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder_.Encode(prompt));
    return static_cast<int64_t>(ids.size());
  }
  // Each choice is run behind the prompt.
  absl::StatusOr<int64_t> CountChoices(const benchmarks::Prompt& prompt) {
    IHA_ASSIGN_OR_RETURN(const std::vector<Continuation> choices, encoder_.EncodeChoices(prompt));
    size_t tokens = 0;
    for (const Continuation& choice : choices) tokens += choice.context.size() + choice.tokens.size();
    return static_cast<int64_t>(tokens);
  }

  benchmarks::PromptEncoder encoder_;
};

// "" when the model is not here.
std::string FolderOf(const std::string& model, const RunFlags& flags,
                     const std::map<std::string, std::string>& folders) {
  if (const auto at = folders.find(model); at != folders.end()) return at->second;
  const std::string folder = flags.models_root + "/" + model;
  std::error_code error;
  return !flags.models_root.empty() && std::filesystem::is_directory(folder, error) ? folder : "";
}

struct JobCost {
  std::optional<int64_t> prompt_tokens;
  int64_t tokens = 0;       // with every generation at its limit
  bool full_items = false;  // some items are counted as full: as long as their benchmark lets them be
};

std::string CostText(const JobCost& cost) {
  if (!cost.prompt_tokens.has_value()) {
    return fmt::format("about {} tokens (a model is not here: its prompts as bytes / 3, generations at their limit)",
                       cost.tokens);
  }
  return fmt::format("{}{}, at most {} tokens with generations", Counted(*cost.prompt_tokens, "prompt token"),
                     cost.full_items ? " (RULER's items counted as full)" : "", cost.tokens);
}

// Costs of all jobs, in their order.
absl::StatusOr<std::vector<JobCost>> CostsOf(const coordinator::SweepPlan& plan, const RunFlags& flags,
                                             const std::map<std::string, std::string>& folders,
                                             const coordinator::BenchmarkOpener& open) {
  std::vector<std::unique_ptr<const benchmarks::Benchmark>> opened;
  for (const SweepEntry& entry : plan.spec.entries) {
    IHA_ASSIGN_OR_RETURN(opened.emplace_back(), open(entry.benchmark));
  }
  std::map<std::string, std::unique_ptr<PromptCounter>> counters;
  std::vector<JobCost> costs;
  for (const coordinator::NewJob& job : plan.jobs) {
    JobCost& cost = costs.emplace_back();
    for (const coordinator::NewShard& shard : job.shards) cost.tokens += shard.estimated_tokens;
    const std::string& model = job.spec.model.name;
    const std::string folder = FolderOf(model, flags, folders);
    if (folder.empty()) continue;
    std::unique_ptr<PromptCounter>& counter = counters[folder];
    if (counter == nullptr) {
      IHA_ASSIGN_OR_RETURN(counter, PromptCounter::Open(folder));
    }
    const benchmarks::Benchmark& benchmark = *opened[static_cast<size_t>(job.spec.entry_index)];
    const auto prompts = counter->Count(benchmark, job.spec.items);
    if (!prompts.ok()) return Annotate(prompts.status(), model);
    const SamplingParams& sampling = job.spec.entry.sampling;
    cost.prompt_tokens = *prompts;
    cost.full_items = FillsALength(benchmark.info());
    cost.tokens = *prompts + job.spec.items * sampling.samples * sampling.max_new_tokens;
  }
  return costs;
}

}  // namespace

absl::StatusOr<std::string> DescribePlan(const Command& command, const RunFlags& flags, const SweepSpec& spec,
                                         const std::map<std::string, std::string>& folders) {
  const coordinator::BenchmarkOpener open = coordinator::OpenerFor(command.data_root);
  IHA_ASSIGN_OR_RETURN(const coordinator::SweepPlan plan, coordinator::Plan(spec, open));
  IHA_ASSIGN_OR_RETURN(const std::vector<JobCost> costs, CostsOf(plan, flags, folders, open));
  Json out = {{"sweep", plan.id.Hex()}, {"jobs", Json::array()}};
  std::string text = fmt::format("sweep {}\n", plan.id.Hex());
  int64_t items = 0;
  JobCost total{.prompt_tokens = 0, .tokens = 0, .full_items = false};
  for (size_t i = 0; i < plan.jobs.size(); i++) {
    const JobSpec& job = plan.jobs[i].spec;
    const auto shards = static_cast<int64_t>(plan.jobs[i].shards.size());
    const std::optional<int64_t> prompt_tokens = costs[i].prompt_tokens;
    const std::string entry = reports::Describe(job.entry);
    out["jobs"].push_back({{"model", job.model.name},
                           {"entry", entry},
                           {"items", job.items},
                           {"shards", shards},
                           {"prompt_tokens", prompt_tokens.has_value() ? Json(*prompt_tokens) : Json(nullptr)},
                           {"estimated_tokens", costs[i].tokens},
                           {"metrics", job.entry.metrics}});
    text += fmt::format("  {} · {}\n    {}, {}, {}\n", job.model.name, entry, Counted(job.items, "item"),
                        Counted(shards, "shard"), CostText(costs[i]));
    items += job.items;
    total.tokens += costs[i].tokens;
    total.full_items = total.full_items || costs[i].full_items;
    if (total.prompt_tokens.has_value() && prompt_tokens.has_value()) {
      *total.prompt_tokens += *prompt_tokens;
    } else {
      total.prompt_tokens.reset();
    }
  }
  out["items"] = items;
  out["prompt_tokens"] = total.prompt_tokens.has_value() ? Json(*total.prompt_tokens) : Json(nullptr);
  out["estimated_tokens"] = total.tokens;
  text += fmt::format("total: {}, {}, {}\n", Counted(static_cast<int64_t>(plan.jobs.size()), "job"),
                      Counted(items, "item"), CostText(total));
  return flags.json ? out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text;
}

}  // namespace iha::cli
