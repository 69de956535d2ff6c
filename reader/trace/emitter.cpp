#include "reader/trace/emitter.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>

#include "reader/trace/record_types.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

void add_saturated(uint64_t& sum, uint64_t count) {
  if (__builtin_add_overflow(sum, count, &sum))
    sum = std::numeric_limits<uint64_t>::max();
}

// Adds what one thread has of a form.
void add_records(FormCounts& counts, uint64_t records) {
  counts.records += records;
  if (records != 0) ++counts.threads;
}

}  // namespace

Emitter::Emitter(const ClockMap& clock, const Definitions& definitions,
                 const WriterFates& fates, FindingLog& findings, const RecordSink& sink,
                 const TimeRange& range, const ReadPlan& plan)
    : range_(range),
      plan_(plan),
      is_past_(definitions.threads().size()),
      clock_(clock),
      definitions_(definitions),
      fates_(fates),
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
  }
}

void Emitter::count_in_progress(const RawRecord& raw, uint32_t writer,
                                const BlockRef& ref) {
  const auto found = fates_.find(writer);
  const WriterFate fate = found == fates_.end() ? WriterFate::kUnknown : found->second;
  if (ref.kind == BlockRef::Kind::kCollector) {
    findings_.add(Rule::kRecordCommitted,
                  absl::StrCat("a record of type ", raw.type, " is in progress"),
                  ref.chunk, raw.offset);
  }
  if (class_of(raw.type) != RecordClass::kData) return;
  if (!range_.is_all()) return;  // when it was begun may not be known
  const bool unfinished =
      fate == WriterFate::kAlive || (fate == WriterFate::kUnknown && ref.live);
  ++(unfinished ? summary_.unfinished : summary_.torn);
  const ThreadIndex thread = definitions_.find_thread(writer);
  if (thread < in_progress_.size()) ++in_progress_[thread];
}

// A program is loaded before its first record, and may hang after its last one. Of
// threads whose end the kernel has recorded, that is the end, and has been counted; the
// collector sees it later. In a range it is the part of the lives in it.
void Emitter::cover_lives(Summary& summary) const {
  if (ticks_ == 0) return;
  const int64_t recording_end_ns = clock_.to_ns(ticks_);
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
    // With the kernel's records it begins there, also if its first ones are in other
    // files (SPEC.md READ-8).
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
    const bool is_late = has_kernel && end_ns != INT64_MAX && end_ns == thread.end_ns;
    if (!thread.ended_unseen && !is_late) cover(std::min(end_ns, recording_end_ns));
  }
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
  summary.processes = definitions_.processes().size();
  for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
    const Thread& thread = definitions_.threads()[i];
    if (thread.is_silent && thread.process != kNoIndex) ++summary.threads;
    if (thread.of_kernel()) continue;
    ++summary.threads;
    const uint64_t own = summary.own_records_by_thread[i];
    add_records(summary.own_blocks, own);
    add_records(summary.shared_chain, summary.records_by_thread[i] - own);
  }
  return summary;
}

}  // namespace arctrace::reader
