// The end of the merge: hands records to the sink, and counts them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/read_plan.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_cursor.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/summary.hpp"
#include "reader/trace/time_range.hpp"
#include "reader/trace/writer_fates.hpp"

namespace arctrace::reader {

// Hands records out in order of time and sums them up.
class Emitter {
 public:
  // What is summed up is in `range`. `plan` says what is passed over.
  Emitter(const ClockMap& clock, const Definitions& definitions, const WriterFates& fates,
          FindingLog& findings, const RecordSink& sink, const TimeRange& range,
          const ReadPlan& plan);

  // Hands out one committed, valid record. False: the sink wants no more.
  bool emit(const RawRecord& raw, ThreadIndex thread, const BlockRef& ref,
            bool after_gap) {
    // Sources are merged by ticks. Only a block that changed since it was indexed can
    // still come too late: then the order counts, and its records get the last record's
    // time.
    if (raw.ticks > ticks_) ticks_ = raw.ticks;
    const Record record{ticks_,
                        clock_.to_ns(ticks_),
                        thread,
                        raw.type,
                        ref.kind == BlockRef::Kind::kExclusive,
                        after_gap,
                        is_first_after_skip(raw, thread),
                        raw.body,
                        ref.chunk,
                        raw.offset};
    if (range_.contains(record.time_ns)) count(record);
    if (record.time_ns >= range_.until_ns) note_past(record);
    stopped_ = !sink_(record);
    return !stopped_;
  }
  bool stopped() const { return stopped_; }

  // Whether this record of a thread in a shared block is passed over, by the plan, or
  // because all is known that is needed of the thread after the range.
  bool passes_over(const RawRecord& raw, ThreadIndex thread, const BlockRef& ref) const {
    return thread < is_past_.size() && raw.type < ARCTRACE_TYPE_PROCESS &&
           (is_past_[thread] || plan_.skips(thread, raw.ticks, ref.handout));
  }
  bool is_past(ThreadIndex thread) const {
    return thread < is_past_.size() && is_past_[thread];
  }

  // Counts a record in progress of `writer`, which may be any number. It is torn, unless
  // its writer may still be at work. (Not only death tears: a signal handler may jump out
  // of the writer.) A record of the collector's in progress leads to a finding.
  void count_in_progress(const RawRecord& raw, uint32_t writer, const BlockRef& ref);
  void count_invalid(uint64_t count) {
    if (range_.is_all()) summary_.invalid += count;
  }
  void count_block(const BlockRef& ref) {
    ++summary_.blocks;
    summary_.bytes += ref.size;
  }

  // How many records in progress a thread left.
  uint64_t in_progress_of(ThreadIndex thread) const {
    return thread < in_progress_.size() ? in_progress_[thread] : 0;
  }

  // User records for which the file had no room.
  uint64_t user_records_lost_by_file() const {
    const uint64_t all = summary_.lost_by_cause[ARCTRACE_LOST_FILE];
    return all > kernel_lost_by_file_ ? all - kernel_lost_by_file_ : 0;
  }

  // The sums so far.
  Summary summary() const;

  // The thread of a writer identity; kNoIndex for the collector.
  ThreadIndex thread_of(uint32_t writer) {
    if (writer != last_writer_) {
      last_writer_ = writer;
      last_thread_ = definitions_.find_thread(writer);
    }
    return last_thread_;
  }

 private:
  static constexpr size_t kFrequentTypes = 128;

  void count(const Record& record) {
    if (record.type < kFrequentTypes) {
      ++by_type_[record.type];
    } else {
      ++summary_.records_by_type[record.type];
    }
    if (record.type >= ARCTRACE_TYPE_ENTER && record.type < ARCTRACE_TYPE_PROCESS) {
      count_time(record);
      ++summary_.records;
      if (record.thread < summary_.records_by_thread.size()) {
        ++summary_.records_by_thread[record.thread];
        if (record.compact) ++summary_.own_records_by_thread[record.thread];
      }
    } else if (record.type == ARCTRACE_TYPE_STACK) {
      if (!record.compact && record.thread < summary_.records_by_thread.size() &&
          summary_.records_by_thread[record.thread] == 0) {
        stacks_.try_emplace(record.thread, record.time_ns);
      }
    } else if (record.type == ARCTRACE_TYPE_LOST) {
      count_lost(record);
    } else if (class_of(record.type) == RecordClass::kKernel) {
      count_time(record);
    }
  }
  void count_time(const Record& record) {
    if (!has_time_) summary_.first_ns = record.time_ns;
    has_time_ = true;
    summary_.last_ns = record.time_ns;
  }
  void count_lost(const Record& record);
  void cover_lives(Summary& summary) const;

  // Whether records of the thread were passed over before this one.
  bool is_first_after_skip(const RawRecord& raw, ThreadIndex thread) {
    if (thread >= awaits_end_of_skip_.size() || !awaits_end_of_skip_[thread] ||
        raw.type >= ARCTRACE_TYPE_PROCESS ||
        raw.ticks < plan_.skipped(thread).until.ticks) {
      return false;
    }
    awaits_end_of_skip_[thread] = false;
    return true;
  }

  // The time up to a thread's next record is told by that record. A STACK or LOST only
  // precedes one.
  void note_past(const Record& record) {
    if (record.thread < is_past_.size() && record.type < ARCTRACE_TYPE_PROCESS &&
        record.type != ARCTRACE_TYPE_STACK && record.type != ARCTRACE_TYPE_LOST &&
        !plan_.is_needed_after(record.thread, record.time_ns)) {
      is_past_[record.thread] = true;
    }
  }

  const TimeRange range_;
  const ReadPlan& plan_;
  std::vector<bool> is_past_;             // by ThreadIndex
  std::vector<bool> awaits_end_of_skip_;  // the same
  // The time of the first STACK of threads that had no other record before it: such a
  // thread may have none at all (SPEC.md REC-9).
  std::map<ThreadIndex, int64_t> stacks_;
  const ClockMap& clock_;
  const Definitions& definitions_;
  const WriterFates& fates_;
  FindingLog& findings_;
  const RecordSink& sink_;
  uint64_t ticks_ = 0;  // of the last record
  bool stopped_ = false;
  bool has_time_ = false;  // first_ns and last_ns of the summary
  uint32_t last_writer_ = ARCTRACE_WRITER_COLLECTOR;
  ThreadIndex last_thread_ = kNoIndex;
  std::array<uint64_t, kFrequentTypes> by_type_{};
  Summary summary_;
  std::vector<uint64_t> in_progress_;  // by ThreadIndex
  uint64_t kernel_lost_by_file_ = 0;
};

}  // namespace arctrace::reader
