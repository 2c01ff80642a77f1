#include "worker/tools/line_generator.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/errors.h"
#include "common/jsonl_tool.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::tools {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const engine::TokenScore& score) {
  Json top = Json::array();
  for (const engine::TokenLogprob& other : score.top) top.push_back({{"id", other.id}, {"logprob", other.logprob}});
  return {{"id", score.token.id}, {"logprob", score.token.logprob}, {"top", std::move(top)}};
}

Json ToJson(const engine::GenerationResult& result, bool text, bool logprobs) {
  Json sample = {
      {"text", text ? Json(result.text) : Json()}, {"ids", result.tokens}, {"finish_reason", NameOf(result.finish)}};
  if (!logprobs) return sample;
  Json scores = Json::array();
  for (const engine::TokenScore& score : result.scores) scores.push_back(ToJson(score));
  sample["logprobs"] = std::move(scores);
  return sample;
}

}  // namespace

struct LineGenerator::Line {
  int64_t number = 0;
  Json output;
  // Guarded by mu_ once the line is in lines_.
  absl::Status status;
  std::vector<engine::GenerationResult> samples;
  size_t left = 0;                      // samples that are not complete
  std::vector<engine::SequenceId> ids;  // of the samples; the reader's
};

LineGenerator::LineGenerator(const tokenizer::Tokenizer* tokenizer, engine::Engine& engine, GenerateOptions options,
                             std::ostream& out, std::ostream& errors)
    : tokenizer_(tokenizer), engine_(engine), options_(std::move(options)), out_(out), errors_(errors) {}

int LineGenerator::Run(LineReader& in) {
  const auto room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return lines_.size() < options_.lines_ahead || !out_; };
  const auto empty = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return lines_.empty(); };
  for (int64_t last = -1; last != in.line_number();) {  // no progress = the input cannot be read any further
    last = in.line_number();
    absl::StatusOr<std::optional<std::string>> text = in.Next();
    if (text.ok() && !text->has_value()) break;
    if (text.ok() && IsBlankLine(**text)) continue;
    const auto line = std::make_shared<Line>();
    line->number = in.line_number();
    std::vector<int32_t> prompt;
    line->status = text.ok() ? Read(**text, *line, prompt) : text.status();
    const bool good = line->status.ok();
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&room));
      if (!out_) break;
      line->samples.resize(good ? static_cast<size_t>(options_.sampling.samples) : 0);
      line->left = line->samples.size();
      lines_.push_back(line);
      FlushLocked();
    }
    if (good) Submit(line, std::move(prompt));
  }
  absl::MutexLock lock(&mu_);
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return lines_.empty() || !out_; };
  mu_.Await(absl::Condition(&done));
  // Nobody can be told what is still being sampled.
  for (const std::shared_ptr<Line>& line : lines_) {
    for (const engine::SequenceId id : line->ids) engine_.Cancel(id);
  }
  mu_.Await(absl::Condition(&empty));
  if (!out_) {
    errors_ << options_.name << ": standard output: cannot be written\n";
    return kExitUnavailable;
  }
  return exit_code_;
}

absl::Status LineGenerator::Read(const std::string& text, Line& line, std::vector<int32_t>& prompt) const {
  Json input;
  IHA_RETURN_IF_ERROR(ReadJsonLine(text, {"prompt", "ids"}, input, line.output));
  const bool has_ids = input.contains("ids");
  if (has_ids == input.contains("prompt")) {
    return InvalidArgument("found {} of \"prompt\" and \"ids\"; expected one of them", has_ids ? "both" : "none");
  }
  if (has_ids) return GetTokenIds(input, "ids", prompt);
  std::string prompt_text;
  IHA_RETURN_IF_ERROR(GetString(input, "prompt", prompt_text));
  if (tokenizer_ == nullptr)
    return InvalidArgument("field \"prompt\": no tokenizer.json beside the model; give \"ids\"");
  prompt = tokenizer_->Encode(prompt_text, {.add_special = true, .parse_special = true});
  return absl::OkStatus();
}

void LineGenerator::Submit(const std::shared_ptr<Line>& line, std::vector<int32_t> prompt) {
  const size_t samples = static_cast<size_t>(options_.sampling.samples);
  for (size_t i = 0; i < samples; i++) {
    engine::GenerationRequest request;
    request.prompt = prompt;
    request.sampling = options_.sampling;
    request.sample_index = static_cast<int32_t>(i);
    request.stops = options_.stops;
    request.eos = options_.eos;
    request.ignore_eos = options_.ignore_eos;
    request.logprobs = options_.logprobs.has_value();
    request.top_logprobs = options_.logprobs.value_or(0);
    const auto id = engine_.Submit(std::move(request), [this, line, i](engine::GenerationResult result) {
      Complete(*line, i, std::move(result));
    });
    if (id.ok()) {
      line->ids.push_back(*id);
      continue;
    }
    engine::GenerationResult refused;
    refused.status = id.status();
    Complete(*line, i, std::move(refused));
  }
}

void LineGenerator::Complete(Line& line, size_t sample, engine::GenerationResult result) {
  absl::MutexLock lock(&mu_);
  if (line.status.ok()) line.status = result.status;
  line.samples[sample] = std::move(result);
  line.left--;
  if (line.left == 0) FlushLocked();
}

void LineGenerator::FlushLocked() {
  bool wrote = false;
  for (; !lines_.empty() && lines_.front()->left == 0; lines_.pop_front()) {
    if (out_) WriteLocked(*lines_.front());
    wrote = true;
  }
  if (wrote) out_.flush();
}

void LineGenerator::WriteLocked(Line& line) {
  if (!line.status.ok()) {
    const absl::string_view message = line.status.message();
    const bool small = line.status.code() == absl::StatusCode::kResourceExhausted;
    errors_ << options_.name << ": line " << line.number << ": " << TerminalSafe({message.data(), message.size()})
            << (small ? "; raise --kv-memory-mib" : "") << std::endl;
    if (exit_code_ != kExitInternal) {
      exit_code_ = ExitCodeFor(line.status) == kExitInternal ? kExitInternal : kExitBadInput;
    }
    return;
  }
  Json samples = Json::array();
  for (const engine::GenerationResult& sample : line.samples) {
    samples.push_back(ToJson(sample, tokenizer_ != nullptr, options_.logprobs.has_value()));
  }
  line.output["samples"] = std::move(samples);
  out_ << JsonLine(line.output);
}

}  // namespace iha::tools
