// The calls of people and CI.
#include <limits>

#include "common/text.h"
#include "proto/codec/parts.h"

namespace iha::codec {
namespace {

template <class Wire>
void WriteSweepId(const SweepId& in, Wire* out) {
  out->Clear();
  out->set_sweep(RawBytes(in.digest));
}

template <class Wire>
absl::StatusOr<SweepId> ReadSweepId(const char* message, const Wire& in) {
  absl::Status status;
  const SweepId id = {Check(message, &status).Hash("sweep", in.sweep())};
  return Checked(std::move(status), id);
}

}  // namespace

void ToWire(const SweepSpec& in, wire::SubmitRequest* out) {
  out->Clear();
  ToWire(in, out->mutable_spec());
}

absl::StatusOr<SweepSpec> FromWire(const wire::SubmitRequest& in) {
  absl::Status status;
  const Check at("SubmitRequest", &status);
  at.Has("spec", in.has_spec());
  SweepSpec spec = Read(in.spec(), at.Sub("spec"));
  return Checked(std::move(status), std::move(spec));
}

void ToWire(const SweepId& in, wire::SubmitReply* out) { WriteSweepId(in, out); }
absl::StatusOr<SweepId> FromWire(const wire::SubmitReply& in) { return ReadSweepId("SubmitReply", in); }
void ToWire(const SweepId& in, wire::StatusRequest* out) { WriteSweepId(in, out); }
absl::StatusOr<SweepId> FromWire(const wire::StatusRequest& in) { return ReadSweepId("StatusRequest", in); }
void ToWire(const SweepId& in, wire::CancelRequest* out) { WriteSweepId(in, out); }
absl::StatusOr<SweepId> FromWire(const wire::CancelRequest& in) { return ReadSweepId("CancelRequest", in); }

void ToWire(const SweepProgress& in, wire::SweepProgress* out) {
  out->Clear();
  out->set_sweep(RawBytes(in.sweep.digest));
  out->set_state(in.state);
  for (const JobProgress& job : in.jobs) {
    wire::JobProgress* to = out->add_jobs();
    to->set_job(RawBytes(job.job.digest));
    to->set_model(job.model);
    to->set_entry(TerminalSafe(job.entry, kMaxLineBytes - 3));  // cut, it ends in "..."
    to->set_state(job.state);
    to->set_planned(job.planned);
    to->set_scored(job.scored);
    to->set_unscored(job.unscored);
  }
  out->set_live_workers(in.live_workers);
  out->set_leased_shards(in.leased_shards);
  out->set_tokens_per_second(in.tokens_per_second);
  for (const std::string& note : in.notes) out->add_notes(note.substr(0, kMaxLineBytes));
}

absl::StatusOr<SweepProgress> FromWire(const wire::SweepProgress& in) {
  absl::Status status;
  const Check at("SweepProgress", &status);
  SweepProgress out;
  out.sweep = {at.Hash("sweep", in.sweep())};
  out.state = at.Name("state", in.state());
  for (int i = 0; i < in.jobs_size(); i++) {
    const Check job = at.Sub("jobs", i);
    JobProgress& to = out.jobs.emplace_back();
    to.job = {job.Hash("job", in.jobs(i).job())};
    to.model = job.Name("model", in.jobs(i).model());
    to.entry = job.Line("entry", in.jobs(i).entry(), kMaxLineBytes);
    to.state = job.Name("state", in.jobs(i).state());
    to.planned = job.Int("planned", in.jobs(i).planned(), 0, kMaxItems);
    to.scored = job.Int("scored", in.jobs(i).scored(), 0, kMaxItems);
    to.unscored = job.Int("unscored", in.jobs(i).unscored(), 0, kMaxItems);
  }
  out.live_workers = at.Int("live_workers", in.live_workers(), 0, kMaxCount);
  out.leased_shards = at.Int("leased_shards", in.leased_shards(), 0, kMaxCount);
  out.tokens_per_second = at.Real("tokens_per_second", in.tokens_per_second(), 0.0, static_cast<double>(kMaxCount));
  if (at.Count("notes", in.notes_size(), kMaxListed)) {
    for (const std::string& note : in.notes()) out.notes.push_back(at.Bytes("notes", note, kMaxLineBytes));
  }
  return Checked(std::move(status), std::move(out));
}

void ToWire(const std::vector<SweepSummary>& in, wire::ListReply* out) {
  out->Clear();
  for (const SweepSummary& sweep : in) {
    wire::SweepSummary* to = out->add_sweeps();
    to->set_sweep(RawBytes(sweep.sweep.digest));
    to->set_state(sweep.state);
    to->set_run_tag(sweep.run_tag);
    to->set_submitted_unix_us(absl::ToUnixMicros(sweep.submitted));
    to->set_planned(sweep.planned);
    to->set_finished(sweep.finished);
  }
}

absl::StatusOr<std::vector<SweepSummary>> FromWire(const wire::ListReply& in) {
  absl::Status status;
  const Check at("ListReply", &status);
  std::vector<SweepSummary> out;
  for (int i = 0; i < in.sweeps_size(); i++) {
    const Check sweep = at.Sub("sweeps", i);
    SweepSummary& to = out.emplace_back();
    to.sweep = {sweep.Hash("sweep", in.sweeps(i).sweep())};
    to.state = sweep.Name("state", in.sweeps(i).state());
    to.run_tag = sweep.Line("run_tag", in.sweeps(i).run_tag(), kMaxNameBytes);
    to.submitted = absl::FromUnixMicros(sweep.Int("submitted_unix_us", in.sweeps(i).submitted_unix_us(), 0, kMaxCount));
    to.planned = sweep.Int("planned", in.sweeps(i).planned(), 0, kMaxCount);
    to.finished = sweep.Int("finished", in.sweeps(i).finished(), 0, kMaxCount);
  }
  return Checked(std::move(status), std::move(out));
}

void ToWire(const TableQuery& in, wire::TableRequest* out) {
  out->Clear();
  out->set_sweep(RawBytes(in.sweep.digest));
  out->set_layout(in.layout);
  out->set_baseline(in.baseline);
  out->set_format(in.format);
}

absl::StatusOr<TableQuery> FromWire(const wire::TableRequest& in) {
  absl::Status status;
  const Check at("TableRequest", &status);
  TableQuery out;
  out.sweep = {at.Hash("sweep", in.sweep())};
  out.layout = at.Name("layout", in.layout());
  out.baseline = at.Line("baseline", in.baseline(), kMaxNameBytes);
  out.format = at.Name("format", in.format());
  return Checked(std::move(status), std::move(out));
}

void ToWire(const std::string& in, wire::TableReply* out) {
  out->Clear();
  out->set_text(in);
}

absl::StatusOr<std::string> FromWire(const wire::TableReply& in) {
  absl::Status status;
  std::string text = Check("TableReply", &status).Bytes("text", in.text(), kMaxTableBytes);
  return Checked(std::move(status), std::move(text));
}

}  // namespace iha::codec
