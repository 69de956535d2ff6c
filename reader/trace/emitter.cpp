#include "reader/trace/emitter.hpp"

#include <absl/strings/str_cat.h>

#include <limits>
#include <utility>

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
                 const TimeRange& range, ReadPlan plan)
    : range_(range),
      plan_(std::move(plan)),
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
  in_progress_.resize(threads);
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

Summary Emitter::summary() const {
  Summary summary = summary_;
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
    if (definitions_.thread(i)->of_kernel()) continue;
    ++summary.threads;
    const uint64_t own = summary.own_records_by_thread[i];
    add_records(summary.own_blocks, own);
    add_records(summary.shared_chain, summary.records_by_thread[i] - own);
  }
  return summary;
}

}  // namespace arctrace::reader
