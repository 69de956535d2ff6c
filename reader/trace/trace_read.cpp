// Opens a trace, merges its blocks, and hands out its records.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "reader/trace/merge.hpp"
#include "reader/trace/process_identities.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/totals.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/trace/trace_impl.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

// ---- Opening, and the facts of a trace --------------------------------------------

absl::StatusOr<Trace> Trace::open(const std::string& path, OpenOptions options) {
  absl::StatusOr<std::unique_ptr<Input>> input = open_file(path);
  if (!input.ok()) return input.status();
  return open(*std::move(input), options);
}

absl::StatusOr<Trace> Trace::open(std::unique_ptr<Input> input, OpenOptions options) {
  std::vector<std::unique_ptr<Input>> parts;
  parts.push_back(std::move(input));
  return open(std::move(parts), options);
}

absl::StatusOr<Trace> Trace::open(const std::vector<std::string>& paths,
                                  OpenOptions options) {
  if (paths.size() == 1) return open(paths.front(), options);
  absl::StatusOr<std::vector<std::unique_ptr<Input>>> parts = open_parts(paths);
  if (!parts.ok()) return parts.status();
  return open(*std::move(parts), options);
}

absl::StatusOr<Trace> Trace::open(std::vector<std::unique_ptr<Input>> parts,
                                  OpenOptions options) {
  const absl::StatusOr<SessionHeader> header =
      read_session_header_untrusted(*parts.front());
  if (!header.ok()) return header.status();
  auto impl = std::make_unique<Impl>(std::move(parts), *header, options);
  if (absl::Status status = impl->load(true); !status.ok()) return status;
  if (const std::optional<Finding> wrong = impl->wrong_index) {
    impl = std::make_unique<Impl>(std::move(impl->parts), *header, options);
    impl->findings.add(*wrong);
    if (absl::Status status = impl->load(false); !status.ok()) return status;
  }
  return Trace(std::move(impl));
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

const Session& Trace::session() const { return impl_->session; }
const Definitions& Trace::definitions() const { return impl_->definitions; }
std::span<const BlockRef> Trace::blocks() const { return impl_->all_blocks; }
Trace::End Trace::end() const { return impl_->end; }
const ClockMap& Trace::clock() const { return impl_->clock; }
const BufferState* Trace::buffer() const {
  return impl_->session.raw ? &impl_->buffer : nullptr;
}
absl::Status Trace::read(const RecordSink& sink) { return impl_->read(sink); }
uint64_t Trace::bytes_to_read() const { return impl_->bytes_to_read(); }
const Summary& Trace::summary() const { return impl_->summary; }
std::span<const Finding> Trace::findings() const { return impl_->findings.kept(); }
uint64_t Trace::finding_count() const { return impl_->findings.count(); }
void Trace::add_finding(Finding finding) { add_findings({&finding, 1}, 1); }
void Trace::add_findings(std::span<const Finding> kept, uint64_t count) {
  impl_->findings.add_all(kept, count);
  impl_->summary.findings = impl_->findings.count();
}

// ---- Reading: which blocks are needed, and their records in order of time ---------

namespace {

// The order of records of one time: definitions before what uses them, interrupted
// records before the interrupting ones.
enum class Rank : uint64_t { kDefinitions, kExclusive, kShared };

uint64_t source_order(Rank rank, uint64_t within) {
  return static_cast<uint64_t>(rank) << 62 | (within & (~0ull >> 2));
}

}  // namespace

absl::Status Trace::Impl::plan_range() {
  if (range.is_all()) return absl::OkStatus();
  absl::StatusOr<ReadPlan> made = ReadPlan::make(
      {*input, clock, definitions, exclusive, shared_writers, listed, lists}, range);
  if (!made.ok()) return made.status();
  plan = *std::move(made);
  return verify_planned();
}

// Verifies the blocks of the plan: of each thread the first block, by which it is known,
// the blocks that will be read, and those that should be read by their time, wherever
// their serials put them; of the shared blocks those that will be read.
absl::Status Trace::Impl::verify_planned() {
  for (const SharedRef& ref : shared) {
    if (ref.list == SIZE_MAX || is_passed_over(ref)) continue;
    const absl::StatusOr<bool> agrees = agrees_with_index(ref.block);
    if (!agrees.ok() || !*agrees) return agrees.status();
  }
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const ThreadIndex thread = definitions.find_thread(blocks.front().writer);
    const SkippedBlocks& skipped = plan.skipped(thread);
    const uint64_t from_ticks = skipped.is_any() ? skipped.until.ticks : 0;
    bool is_past = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t first_ns = clock.to_ns(blocks[i].base_ticks);
      const bool begins_after =
          first_ns >= range.until_ns && !plan.is_needed_after(thread, first_ns);
      const bool is_read = i == 0 || i < skipped.first || (i >= skipped.end && !is_past);
      // After the range the thread's next record is read, which is in its next block.
      is_past |= begins_after && i >= skipped.end;
      const bool is_of_range = !begins_after && blocks[i].base_ticks >= from_ticks;
      if (!is_read && !is_of_range) continue;
      const absl::StatusOr<bool> agrees = agrees_with_index(blocks[i]);
      if (!agrees.ok() || !*agrees) return agrees.status();
    }
  }
  return absl::OkStatus();
}

uint64_t Trace::Impl::bytes_to_read() const {
  uint64_t bytes = 0;
  for (const SharedRef& ref : shared) {
    if (!is_passed_over(ref)) bytes += ref.block.size - ref.block.records_offset();
  }
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const SkippedBlocks& skipped =
        plan.skipped(definitions.find_thread(blocks.front().writer));
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i >= skipped.first && i < skipped.end) continue;
      if (clock.to_ns(blocks[i].base_ticks) >= range.until_ns) break;
      bytes += blocks[i].size - blocks[i].records_offset();
    }
  }
  return bytes;
}

// Returns the first existing block of those in which threads write together.
const Trace::Impl::SharedRef* Trace::Impl::oldest_of_chain() const {
  const SharedRef* oldest = nullptr;
  for (const SharedRef& ref : shared) {
    if (ref.block.kind != BlockRef::Kind::kShared || ref.block.of_kernel()) continue;
    if (oldest == nullptr || ref.block.handout < oldest->block.handout) oldest = &ref;
  }
  return oldest;
}

// Whether another collector may have taken a block, or a newer one may have overwritten
// it. The first handouts of a session give its blocks one after the other.
bool Trace::Impl::lacks_blocks() const {
  std::vector<uint64_t> handouts;
  for (const SharedRef& ref : shared) handouts.push_back(ref.block.handout);
  for (const std::vector<BlockRef>& blocks : exclusive) {
    for (const BlockRef& block : blocks) handouts.push_back(block.handout);
  }
  std::sort(handouts.begin(), handouts.end());
  handouts.erase(std::unique(handouts.begin(), handouts.end()), handouts.end());
  return !handouts.empty() && handouts.back() >= handouts.size();
}

std::vector<std::unique_ptr<RecordSource>> Trace::Impl::open_sources() {
  std::vector<std::unique_ptr<RecordSource>> sources;
  sources.reserve(exclusive.size() + shared.size());
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const uint32_t writer = blocks.front().writer;
    const ThreadIndex thread = definitions.find_thread(writer);
    const SkippedBlocks& skipped = plan.skipped(thread);
    if (skipped.first == 0 && skipped.end == blocks.size()) continue;
    sources.push_back(exclusive_source(*input, blocks, thread, skipped,
                                       source_order(Rank::kExclusive, writer), findings));
  }
  const bool is_overwritten = session.mode == ARCTRACE_MODE_OVERWRITE;
  const SharedRef* oldest = oldest_of_chain();
  for (const SharedRef& ref : shared) {
    if (is_passed_over(ref)) continue;
    const bool is_data = ref.block.kind == BlockRef::Kind::kShared;
    const bool is_oldest = &ref == oldest;
    sources.push_back(shared_source(
        *input, ref.block,
        ref.block.of_kernel() ? clock.to_ticks(ref.first_ticks) : ref.first_ticks,
        is_data ? source_order(Rank::kShared, ref.block.handout)
                : source_order(Rank::kDefinitions, ref.block.chunk),
        clock,
        !is_overwritten ? ChainGaps::kNone
        : is_oldest     ? ChainGaps::kBefore
                        : ChainGaps::kAnywhere,
        findings));
  }
  return sources;
}

absl::Status Trace::Impl::read(const RecordSink& sink) {
  findings.forget(opened);
  Emitter emitter(clock, definitions, fates, findings, sink, range, plan);
  if (absl::Status status = merge(open_sources(), emitter); !status.ok()) return status;
  if (!emitter.stopped()) {
    emit_unreported_losses(buffer, session, geometry.block_count, emitter);
  }
  summary = emitter.summary();
  // Processes and threads whose definitions did not fit count, too.
  const uint64_t processes = definitions.processes().size();
  const uint64_t threads = emitter.counted_threads().size();
  if (session.processes > processes) summary.processes += session.processes - processes;
  if (session.threads > threads) summary.threads += session.threads - threads;
  // In a range, records of the rest of the time are not missing.
  if (range.is_all() && !emitter.stopped()) {
    const bool is_in_part_elsewhere = session.resumed && lacks_blocks();
    totals.account(session, definitions, fates, emitter, is_in_part_elsewhere, summary,
                   findings);
  }
  summary.filtered_out = totals.filtered_out();
  file_totals.account(definitions.missing_files(), range, summary);
  summary.findings = findings.count();
  return absl::OkStatus();
}

// ---- Handing out: the emitter -----------------------------------------------------

namespace {

void add_saturated(uint64_t& sum, uint64_t count) {
  if (__builtin_add_overflow(sum, count, &sum))
    sum = std::numeric_limits<uint64_t>::max();
}

// Adds one thread's records of a form.
void add_records(FormCounts& counts, uint64_t records) {
  counts.records += records;
  if (records != 0) ++counts.threads;
}

}  // namespace

Emitter::Emitter(const ClockMap& clock, const Definitions& definitions,
                 const WriterOutcomes& fates, FindingLog& findings,
                 const RecordSink& sink, const TimeRange& range, const ReadPlan& plan)
    : range_(range),
      plan_(plan),
      is_past_(definitions.threads().size()),
      clock_(clock),
      definitions_(definitions),
      outcomes_(fates),
      findings_(findings),
      sink_(sink) {
  const size_t threads = definitions.threads().size();
  summary_.records_by_thread.resize(threads);
  summary_.own_records_by_thread.resize(threads);
  summary_.lost_by_thread.resize(threads);
  summary_.overwritten_by_thread.resize(threads);
  summary_.elsewhere_by_thread.resize(threads);
  in_progress_.resize(threads);
  awaits_end_of_skip_.resize(threads);
  for (ThreadIndex i = 0; i < threads; ++i) {
    awaits_end_of_skip_[i] = plan.skipped(i).is_any();
  }
}

void Emitter::count_lost(const Record& record) {
  const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
  add_saturated(summary_.lost, lost.count);
  add_saturated(summary_.lost_by_cause[lost.cause], lost.count);
  if (lost.cause == ARCTRACE_LOST_FILE && (lost.flags & ARCTRACE_LOST_CPU) != 0) {
    add_saturated(kernel_lost_by_file_, lost.count);
  }
  if (record.thread < summary_.lost_by_thread.size()) {
    add_saturated(summary_.lost_by_thread[record.thread], lost.count);
    // The replay begins the thread there, too (SPEC.md READ-8).
    if (summary_.records_by_thread[record.thread] == 0 && lost.since_ticks != 0 &&
        (lost.flags & ARCTRACE_LOST_INHERITED) == 0) {
      first_losses_.try_emplace(record.thread,
                                std::max(clock_.to_ns(lost.since_ticks),
                                         definitions_.threads()[record.thread].start_ns));
    }
  }
}

void Emitter::count_in_progress(const RawRecord& raw, uint32_t writer,
                                const BlockRef& ref) {
  const auto found = outcomes_.find(writer);
  const WriterOutcome fate =
      found == outcomes_.end() ? WriterOutcome::kUnknown : found->second;
  if (ref.kind == BlockRef::Kind::kCollector) {
    findings_.add(Rule::kRecordCommitted,
                  absl::StrCat("a record of type ", raw.type, " is in progress"),
                  ref.chunk, raw.offset);
  }
  if (class_of(raw.type) != RecordClass::kData) return;
  if (!range_.is_all()) return;  // the time of the record may not be known
  const bool unfinished =
      fate == WriterOutcome::kAlive || (fate == WriterOutcome::kUnknown && ref.live);
  ++(unfinished ? summary_.unfinished : summary_.torn);
  const ThreadIndex thread = definitions_.find_thread(writer);
  if (thread < in_progress_.size()) ++in_progress_[thread];
}

// Extends the summary's time to the lifetimes of threads. A program is loaded before its
// first record, and may hang after its last one. If the kernel has recorded the end of a
// thread, that has been counted; the collector sees it later, unless the thread has told
// it. In a range, only the part of the lifetimes in it counts.
void Emitter::cover_lives(Summary& summary) const {
  if (ticks_ == 0) return;
  const int64_t recording_end_ns =
      std::min(clock_.to_ns(ticks_), definitions_.known_until_ns());
  const bool has_kernel = definitions_.has_dispatches();
  bool has_time = has_time_;
  const int64_t first_ns = has_time ? summary.first_ns : INT64_MIN;
  const auto cover = [&](int64_t time_ns) {
    time_ns = std::clamp(time_ns, range_.from_ns, range_.until_ns);
    summary.first_ns = has_time ? std::min(summary.first_ns, time_ns) : time_ns;
    summary.last_ns = has_time ? std::max(summary.last_ns, time_ns) : time_ns;
    has_time = true;
  };
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    const Thread& thread = definitions_.threads()[i];
    const int64_t begin_ns = definitions_.life_begin_ns(i);
    const bool is_program = begin_ns != INT64_MIN && begin_ns <= recording_end_ns;
    // With the kernel's records the process begins there, even if its first records are
    // in other files (SPEC.md READ-8).
    const Process* process = definitions_.process_of(i);
    const bool is_later = has_kernel && process != nullptr && !thread.of_kernel() &&
                          (process->pid != thread.tid || process->ran_before) &&
                          thread.start_ns <= recording_end_ns &&
                          definitions_.life_end_ns(i) >= first_ns;
    const auto stack = stacks_.find(i);
    const bool is_silent = stack != stacks_.end() && summary.records_by_thread[i] == 0;
    if (thread.of_kernel() ||
        (!is_program && !is_silent && !is_later && summary.records_by_thread[i] == 0)) {
      continue;
    }
    const int64_t end_ns = definitions_.life_end_ns(i);
    if (begin_ns >= range_.until_ns || end_ns < range_.from_ns) continue;
    if (is_program) cover(begin_ns);
    if (is_later && !is_program) cover(thread.start_ns);
    if (is_silent) cover(stack->second);
    const auto loss = first_losses_.find(i);
    if (loss != first_losses_.end()) cover(loss->second);
    const bool is_late = has_kernel && end_ns != INT64_MAX && end_ns == thread.end_ns &&
                         end_ns != thread.announced_ns;
    if (!thread.ended_unseen && !is_late) cover(std::min(end_ns, recording_end_ns));
  }
}

std::vector<ThreadIndex> Emitter::counted_threads() const {
  std::vector<ThreadIndex> counted;
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    const Thread& thread = definitions_.threads()[i];
    const bool is_silent = thread.is_silent && thread.process != kNoIndex;
    if (!thread.of_kernel() || is_silent) counted.push_back(i);
  }
  return counted;
}

Summary Emitter::summary() const {
  Summary summary = summary_;
  cover_lives(summary);
  for (size_t type = 0; type < by_type_.size(); ++type) {
    if (by_type_[type] != 0) {
      summary.records_by_type[static_cast<uint16_t>(type)] = by_type_[type];
    }
  }
  int64_t duration = 0;
  if (__builtin_sub_overflow(summary.last_ns, summary.first_ns, &duration)) {
    duration = std::numeric_limits<int64_t>::max();
  }
  summary.duration_ns = duration;
  const std::vector<ThreadIndex> threads = counted_threads();
  summary.processes = join_identities(definitions_).size();
  summary.threads = count_joined(definitions_, threads).threads;
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    const Thread& thread = definitions_.threads()[i];
    if (thread.of_kernel()) continue;
    const uint64_t own = summary.own_records_by_thread[i];
    add_records(summary.own_blocks, own);
    add_records(summary.shared_chain, summary.records_by_thread[i] - own);
  }
  return summary;
}

}  // namespace arctrace::reader
