#include "tests/coordinator/sim_runner.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include "common/status_macros.h"
#include "coordinator/store/invariants.h"
#include "coordinator/store/snapshot_reader.h"

namespace iha::coordinator {
namespace {

std::vector<std::string> SplitBy(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

int64_t ToInt(const std::string& text, int64_t otherwise) {
  int64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

absl::StatusOr<std::vector<int64_t>> Items(const SimRunner::Step& step, const std::vector<int64_t>& otherwise) {
  const auto it = step.parameters.find("items");
  if (it == step.parameters.end()) return otherwise;
  std::vector<int64_t> items;
  for (const std::string& part : SplitBy(it->second, ',')) items.push_back(ToInt(part, -1));
  return items;
}

// "OK", "ABORTED", ...
std::string CodeOf(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

SimRunner::Step Parse(const std::string& line) {
  SimRunner::Step step;
  const std::string code = line.substr(0, line.find('#'));
  const size_t arrow = code.find("->");
  for (const std::string& word : SplitBy(code.substr(0, arrow), ' ')) {
    const size_t equals = word.find('=');
    if (step.verb.empty()) {
      step.verb = word;
    } else if (equals == std::string::npos) {
      step.words.push_back(word);
    } else {
      step.parameters[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  if (arrow != std::string::npos) step.expected = SplitBy(code.substr(arrow + 2), ' ');
  return step;
}

// The first expected word that `found` lacks, or "".
std::string Missing(const std::vector<std::string>& expected, const std::string& found) {
  const std::vector<std::string> words = SplitBy(found, ' ');
  for (const std::string& word : expected) {
    if (std::find(words.begin(), words.end(), word) == words.end()) return word;
  }
  return "";
}

}  // namespace

std::string SimRunner::Step::Get(const std::string& key, const std::string& otherwise) const {
  const auto it = parameters.find(key);
  return it == parameters.end() ? otherwise : it->second;
}

int64_t SimRunner::Step::GetInt(const std::string& key, int64_t otherwise) const {
  const auto it = parameters.find(key);
  return it == parameters.end() ? otherwise : ToInt(it->second, otherwise);
}

std::string SimRunner::RunFile(const std::string& script_path) {
  std::ifstream in(script_path);
  if (!in) return script_path + ": cannot be read";
  std::string log;
  const auto failed = [&](int line, const std::string& what) {
    return fmt::format("{}:{}: {}\nconfig: {}\ndatabase: {}\nevents:\n{}", script_path, line, what,
                       world_.config().name, world_.config().on_disk ? world_.db_path() : "(memory)", log);
  };
  if (const absl::Status opened = world_.Open(); !opened.ok()) return failed(0, opened.ToString());
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const Step step = Parse(line);
    if (step.verb.empty()) continue;
    absl::StatusOr<std::string> result = Execute(step);
    // A refused call is a result like any other; a script that expects it says its code.
    const std::string found = result.ok() ? *result : CodeOf(result.status());
    log += fmt::format("  {}: {}\n      -> {}{}\n", number, line, found,
                       result.ok() ? "" : " (" + std::string(result.status().message()) + ")");
    std::vector<std::string> expected = step.expected;
    if (expected.empty() && !result.ok()) return failed(number, "found " + result.status().ToString());
    const std::string missing = Missing(expected, found);
    if (!missing.empty()) return failed(number, fmt::format("expected \"{}\", found \"{}\"", missing, found));
    if (const absl::Status sound = CheckAfterStep(); !sound.ok()) {
      return failed(number, std::string(sound.message()));
    }
  }
  return "";
}

absl::Status SimRunner::CheckAfterStep() {
  if (world_.config().restart_each_step) IHA_RETURN_IF_ERROR(world_.Restart());
  IHA_ASSIGN_OR_RETURN(const std::vector<std::string> violations,
                       CheckInvariants(world_.store(), &benchmarks::EntryValues));
  if (!violations.empty()) return Internal("{}", violations.front());
  return world_.store().Read([&](ReadTxn& txn) -> absl::Status {
    for (auto& [name, sweep] : sweeps_) {
      IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
      for (const JobRecord& job : jobs) {
        IHA_ASSIGN_OR_RETURN(const std::vector<ShardRecord> shards, txn.Shards(job.id));
        for (const ShardRecord& shard : shards) {
          const auto before = final_states_.find(shard.id);
          if (before != final_states_.end() && before->second != shard.state) {
            return Internal("INV-SHARD-2: shard {} was {}, is {}", static_cast<int64_t>(shard.id),
                            NameOf(before->second), NameOf(shard.state));
          }
          if (IsFinal(shard.state)) final_states_[shard.id] = shard.state;
        }
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> SimRunner::Execute(const Step& step) {
  if (step.verb == "submit") return Submit(step);
  if (step.verb == "register") return Register(step);
  if (step.verb == "offer") return Offer(step);
  if (step.verb == "acquire" || step.verb == "again") return Acquire(step);
  if (step.verb == "commit") return Commit(step, true);
  if (step.verb == "put") return Commit(step, false);
  if (step.verb == "unscored") return Unscored(step);
  if (step.verb == "heartbeat") return Heartbeat(step);
  if (step.verb == "release") return Release(step);
  if (step.verb == "drive") return Drive(step);
  if (step.verb == "lookup") return Lookup(step);
  if (step.verb == "expect") return Expect(step);
  if (step.verb == "cancel") {
    IHA_ASSIGN_OR_RETURN(const SweepId sweep, SweepOf(step));
    return CodeOf(world_.Call([&](Coordinator& c) { return c.Cancel(sweep); }));
  }
  if (step.verb == "restart") return CodeOf(world_.Restart());
  if (step.verb == "upgrade") {  // the program is replaced by one with another grader
    world_.set_benchmark({.grader_version = step.Get("grader", "sim-grader/1"), .data = step.Get("data", "v1")});
    return CodeOf(world_.Restart());
  }
  if (step.verb == "advance") {
    absl::Duration by;
    if (step.words.empty() || !absl::ParseDuration(step.words[0], &by)) return InvalidArgument("advance: how far?");
    return CodeOf(world_.Advance(by));
  }
  return InvalidArgument("unknown verb \"{}\"", step.verb);
}

absl::StatusOr<SweepId> SimRunner::SweepOf(const Step& step) const {
  const auto it = sweeps_.find(step.Get("sweep", last_sweep_));
  if (it == sweeps_.end()) return InvalidArgument("no such sweep in this script");
  return it->second;
}

absl::StatusOr<SimRunner::Held*> SimRunner::LeaseOf(const Step& step) {
  const auto it = step.words.empty() ? leases_.end() : leases_.find(step.words[0]);
  if (it == leases_.end() || !it->second.grant.has_value()) return InvalidArgument("no such lease in this script");
  return &it->second;
}

absl::StatusOr<std::string> SimRunner::Submit(const Step& step) {
  SweepSpec spec =
      SimSweep(step.GetInt("items", 4), static_cast<int32_t>(step.GetInt("k", 1)), step.GetInt("shard_items", 2));
  spec.max_attempts = static_cast<int32_t>(step.GetInt("max_attempts", 3));
  spec.run_tag = step.Get("tag", "");
  spec.entries[0].benchmark.name = step.Get("benchmark", "sim");
  if (step.parameters.contains("limit")) spec.entries[0].limit = step.GetInt("limit", 0);
  if (step.parameters.contains("models")) {
    spec.models.clear();
    for (const std::string& name : SplitBy(step.Get("models", ""), ',')) spec.models.push_back({name, ""});
  }
  if (step.parameters.contains("weights")) spec.models[0].weights_digest = SimWeights(step.Get("weights", "")).Hex();
  IHA_ASSIGN_OR_RETURN(const SweepId sweep, world_.Call([&](Coordinator& c) { return c.Submit(spec); }));
  last_sweep_ = step.Get("sweep", "s");
  sweeps_[last_sweep_] = sweep;
  return "OK";
}

absl::StatusOr<std::string> SimRunner::Register(const Step& step) {
  const std::string& name = step.words.at(0);
  const int64_t incarnation = step.GetInt("incarnation", incarnations_[name] + 1);
  const RequestId request = NewRequest();
  IHA_RETURN_IF_ERROR(world_
                          .Call([&](Coordinator& c) {
                            return c.RegisterWorker({.request_id = request,
                                                     .worker = {name},
                                                     .incarnation = incarnation,
                                                     .numerics_ids = {},
                                                     .description = "simulated"});
                          })
                          .status());
  incarnations_[name] = incarnation;
  if (step.parameters.contains("weights")) weights_[name] = step.Get("weights", "");
  return "OK";
}

absl::StatusOr<std::string> SimRunner::Offer(const Step& step) {
  const std::string& name = step.words.at(0);
  if (!incarnations_.contains(name)) IHA_RETURN_IF_ERROR(Register({.verb = "", .words = {name}}).status());
  const RequestId request = NewRequest();
  weights_[name] = step.Get("weights", "A");
  OfferModelsRequest offer{.request_id = request, .worker = {name}, .offers = {}};
  for (const std::string& model : SplitBy(step.Get("model", "m"), ',')) {
    offer.offers.push_back(
        {.name = model, .weights = SimWeights(weights_[name]), .tokenizer = SimTokenizer(), .context_tokens = 1024});
  }
  IHA_ASSIGN_OR_RETURN(const OfferModelsReply reply, world_.Call([&](Coordinator& c) { return c.OfferModels(offer); }));
  return fmt::format("accepted={} refused={}", reply.accepted.size(), reply.refused.size());
}

absl::Status SimRunner::EnsureWorker(const std::string& name) {
  if (incarnations_.contains(name)) return absl::OkStatus();
  IHA_RETURN_IF_ERROR(Register({.verb = "", .words = {name}}).status());
  return Offer({.verb = "", .words = {name}, .parameters = {{"model", "m,m2"}}}).status();
}

absl::StatusOr<AcquireLeaseReply> SimRunner::AcquireFor(const std::string& worker, const RequestId& request) {
  IHA_RETURN_IF_ERROR(EnsureWorker(worker));
  NumericsSpec numerics;
  numerics.backend = "fake";
  const AcquireLeaseRequest acquire{.request_id = request,
                                    .worker = {worker},
                                    .incarnation = incarnations_[worker],
                                    .models = {"m", "m2"},
                                    .numerics_ids = {numerics.Id()}};
  return world_.Call([&](Coordinator& c) { return c.AcquireLease(acquire); });
}

absl::StatusOr<std::string> SimRunner::Acquire(const Step& step) {
  Held held;
  std::string name;
  if (step.verb == "again") {  // the request of an earlier lease, sent once more
    name = step.words.at(0);
    held = leases_[name];
  } else {
    held.worker = step.words.at(0);
    name = step.words.size() > 2 ? step.words[2] : "unnamed";
    held.request = NewRequest();
  }
  IHA_ASSIGN_OR_RETURN(const AcquireLeaseReply reply, AcquireFor(held.worker, held.request));
  if (!reply.grant.has_value()) return reply.all_done ? "none all_done" : "none";
  held.grant = reply.grant;
  leases_[name] = held;
  const LeaseGrant& grant = *reply.grant;
  return fmt::format("shard={} epoch={} items={} model={}", static_cast<int64_t>(grant.shard) - 1, grant.fence.epoch,
                     fmt::join(grant.missing, ","), grant.job.model.name);
}

absl::StatusOr<std::string> SimRunner::Commit(const Step& step, bool commit) {
  IHA_ASSIGN_OR_RETURN(const Held* held, LeaseOf(step));
  const LeaseGrant& grant = *held->grant;
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> items, Items(step, grant.missing));
  const SimWorkOptions options{.text = step.Get("text", ""),
                               .variant = step.Get("variant", ""),
                               .samples = static_cast<int32_t>(step.GetInt("samples", -1))};
  PutGenerationsRequest put{.request_id = NewRequest(), .worker = {held->worker}, .generations = {}};
  CommitItemsRequest request{.request_id = NewRequest(),
                             .worker = {held->worker},
                             .shard = grant.shard,
                             .fence = grant.fence,
                             .job_id = grant.job_id,
                             .items = {}};
  for (const int64_t item : items) {
    IHA_ASSIGN_OR_RETURN(SimWork work, DoSimWork(grant, item, options));
    for (Generation& generation : work.generations) put.generations.push_back(std::move(generation));
    if (step.Get("lie", "") == "grade") work.item.samples[0].grades[0].score = {1, 2};
    if (step.Get("lie", "") == "value") work.item.values[0].score = {1, 3};
    if (step.Get("lie", "") == "id") work.item.item_id = "another";
    request.items.push_back(std::move(work.item));
  }
  if (step.Get("put", "yes") == "yes") {
    IHA_ASSIGN_OR_RETURN(const PutGenerationsReply reply,
                         world_.Call([&](Coordinator& c) { return c.PutGenerations(put); }));
    if (!commit) return fmt::format("OK divergent={}", reply.divergent.size());
  }
  IHA_ASSIGN_OR_RETURN(const CommitItemsReply reply,
                       world_.Call([&](Coordinator& c) { return c.CommitItems(request); }));
  std::vector<std::string> codes;
  for (const absl::Status& outcome : reply.outcomes) codes.push_back(CodeOf(outcome));
  const bool equal = std::all_of(codes.begin(), codes.end(), [&](const std::string& c) { return c == codes[0]; });
  return fmt::format("{} shard_done={}", equal && !codes.empty() ? codes[0] : fmt::format("{}", fmt::join(codes, ",")),
                     reply.shard_done ? "yes" : "no");
}

absl::StatusOr<std::string> SimRunner::Unscored(const Step& step) {
  IHA_ASSIGN_OR_RETURN(const Held* held, LeaseOf(step));
  const LeaseGrant& grant = *held->grant;
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> items, Items(step, grant.missing));
  iha::Unscored reason = iha::Unscored::kPromptTooLong;
  for (int i = 0; i <= static_cast<int>(kLastUnscored); ++i) {
    if (step.Get("reason", "") == NameOf(static_cast<iha::Unscored>(i))) reason = static_cast<iha::Unscored>(i);
  }
  CommitItemsRequest request{.request_id = NewRequest(),
                             .worker = {held->worker},
                             .shard = grant.shard,
                             .fence = grant.fence,
                             .job_id = grant.job_id,
                             .items = {}};
  for (const int64_t index : items) {
    ItemResult item;
    item.index = index;
    item.item_id = fmt::format("sim-{}", index);
    item.unscored = reason;
    for (const std::string& metric : grant.job.entry.metrics) {
      ItemValue& value = item.values.emplace_back();
      value.metric = metric;
      value.unscored = reason;
    }
    request.items.push_back(std::move(item));
  }
  IHA_ASSIGN_OR_RETURN(const CommitItemsReply reply,
                       world_.Call([&](Coordinator& c) { return c.CommitItems(request); }));
  return CodeOf(reply.outcomes.at(0));
}

absl::StatusOr<std::string> SimRunner::Heartbeat(const Step& step) {
  const std::string& worker = step.words.at(0);
  HeartbeatRequest request{
      .request_id = NewRequest(), .worker = {worker}, .incarnation = incarnations_[worker], .leases = {}};
  for (const std::string& name : SplitBy(step.Get("leases", ""), ',')) {
    const LeaseGrant& grant = leases_.at(name).grant.value();
    request.leases.push_back({grant.shard, grant.fence});
  }
  IHA_ASSIGN_OR_RETURN(const HeartbeatReply reply, world_.Call([&](Coordinator& c) { return c.Heartbeat(request); }));
  std::vector<std::string> verdicts;
  for (const LeaseVerdict verdict : reply.verdicts) {
    verdicts.push_back(verdict == LeaseVerdict::kKeep ? "KEEP" : verdict == LeaseVerdict::kCancel ? "CANCEL" : "LOST");
  }
  return fmt::format("{}", fmt::join(verdicts, ","));
}

absl::StatusOr<std::string> SimRunner::Release(const Step& step) {
  IHA_ASSIGN_OR_RETURN(const Held* held, LeaseOf(step));
  const std::string failed = step.Get("failed", "");
  const ReleaseLeaseRequest request{.request_id = NewRequest(),
                                    .worker = {held->worker},
                                    .shard = held->grant->shard,
                                    .fence = held->grant->fence,
                                    .reason = failed.empty() ? ReleaseReason::kDrain : ReleaseReason::kFailed,
                                    .error = failed,
                                    .permanent = step.Get("permanent", "no") == "yes"};
  return CodeOf(world_.Call([&](Coordinator& c) { return c.ReleaseLease(request); }));
}

// Lets a worker work, a second at a time, until nothing is left for it.
absl::StatusOr<std::string> SimRunner::Drive(const Step& step) {
  const std::string& worker = step.words.at(0);
  for (int idle = 0; idle < 120;) {
    IHA_ASSIGN_OR_RETURN(const AcquireLeaseReply reply, AcquireFor(worker, NewRequest()));
    if (reply.all_done) return "all_done";
    if (!reply.grant.has_value()) {
      ++idle;
      IHA_RETURN_IF_ERROR(world_.Advance(absl::Seconds(1)));
      continue;
    }
    leases_["driven"] = {.worker = worker, .request = {}, .grant = reply.grant};
    Step commit{.verb = "commit", .words = {"driven"}};
    IHA_RETURN_IF_ERROR(Commit(commit, true).status());
  }
  return "stuck";
}

absl::StatusOr<std::string> SimRunner::Lookup(const Step& step) {
  IHA_ASSIGN_OR_RETURN(const Held* held, LeaseOf(step));
  IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> items, Items(step, held->grant->missing));
  LookupGenerationsRequest request;
  for (const int64_t item : items) {
    IHA_ASSIGN_OR_RETURN(const SimWork work, DoSimWork(*held->grant, item));
    for (const Generation& generation : work.generations) request.keys.push_back(generation.key);
  }
  IHA_ASSIGN_OR_RETURN(const LookupGenerationsReply reply,
                       world_.Call([&](Coordinator& c) { return c.LookupGenerations(request); }));
  return fmt::format("hits={} misses={}", reply.found.size(), request.keys.size() - reply.found.size());
}

}  // namespace iha::coordinator
