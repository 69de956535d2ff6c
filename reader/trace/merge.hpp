// The merge of a trace's blocks by time: the sources of records, which blocks are, and
// the end of the merge, which hands records to the sink and counts them.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/read_plan.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The end of the merge: hands records to the sink, in order of time, and sums them up.
class Emitter {
 public:
  // `range`: of the records that are summed up. `plan`: tells which records are skipped.
  Emitter(const ClockMap& clock, const Definitions& definitions,
          const WriterOutcomes& fates, FindingLog& findings, const RecordSink& sink,
          const TimeRange& range, const ReadPlan& plan);

  // Hands out one committed, valid record. Returns false if the sink wants no more.
  bool emit(const RawRecord& raw, ThreadIndex thread, const BlockRef& ref,
            bool after_gap) {
    // Sources are merged by ticks. Only a block that changed since it was indexed can
    // still come too late: then its records stay where they are, and get the last
    // record's time.
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

  // Whether this record of a thread in a shared block is skipped: by the plan, or because
  // all that is needed of the thread after the range is known.
  bool passes_over(const RawRecord& raw, ThreadIndex thread, const BlockRef& ref) const {
    return thread < is_past_.size() && raw.type < ARCTRACE_TYPE_PROCESS &&
           (is_past_[thread] || plan_.skips(thread, raw.ticks, ref.handout));
  }
  bool is_past(ThreadIndex thread) const {
    return thread < is_past_.size() && is_past_[thread];
  }

  // Counts a record in progress of `writer`, which may be any number. The record is torn,
  // unless its writer may still be at work. (Not only death tears: a signal handler may
  // jump out of the writer.) A record of the collector's in progress leads to a finding.
  void count_in_progress(const RawRecord& raw, uint32_t writer, const BlockRef& ref);
  void count_invalid(uint64_t count) {
    if (range_.is_all()) summary_.invalid += count;
  }
  void count_block(const BlockRef& ref) {
    ++summary_.blocks;
    summary_.bytes += ref.size;
  }

  // How many records a thread did not commit.
  uint64_t in_progress_of(ThreadIndex thread) const {
    return thread < in_progress_.size() ? in_progress_[thread] : 0;
  }

  // The number of user records that did not fit into the file.
  uint64_t user_records_lost_by_file() const {
    const uint64_t all = summary_.lost_by_cause[ARCTRACE_LOST_FILE];
    return all > kernel_lost_by_file_ ? all - kernel_lost_by_file_ : 0;
  }

  // The sums so far.
  Summary summary() const;
  // The threads that the summary counts: of processes, whether or not they have written
  // records.
  std::vector<ThreadIndex> counted_threads() const;

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

  // Whether records of the thread were skipped before this one.
  bool is_first_after_skip(const RawRecord& raw, ThreadIndex thread) {
    if (thread >= awaits_end_of_skip_.size() || !awaits_end_of_skip_[thread] ||
        raw.type >= ARCTRACE_TYPE_PROCESS ||
        raw.ticks < plan_.skipped(thread).until.ticks) {
      return false;
    }
    awaits_end_of_skip_[thread] = false;
    return true;
  }

  // Notes when a thread is past the range: its next record tells the time up to it. A
  // STACK or LOST does not count, because it only precedes such a record.
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
  // thread may have no records at all (SPEC.md REC-9).
  std::map<ThreadIndex, int64_t> stacks_;
  // From when on records of threads were lost before the first one.
  std::map<ThreadIndex, int64_t> first_losses_;
  const ClockMap& clock_;
  const Definitions& definitions_;
  const WriterOutcomes& outcomes_;
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

// A source of records in order of ticks. Each source has an `order` of its own, which
// decides between records of one time.
class RecordSource {
 public:
  enum class Result : uint8_t { kMore, kEnd, kStopped };

  RecordSource(uint64_t key, uint64_t order) : key_(key), order_(order) {}
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;
  virtual ~RecordSource() = default;

  // The ticks of the source's next record, or a lower bound.
  uint64_t key() const { return key_; }
  uint64_t order() const { return order_; }

  // Emits records while they come before `limit`, which is the key of the next best
  // source; that source's records go first at this key if `limit_first`. If key() was
  // only a lower bound, it is exact after the call. Error: the input cannot be read.
  virtual absl::StatusOr<Result> drain(uint64_t limit, bool limit_first,
                                       Emitter& emitter) = 0;

 protected:
  // Whether a record at `ticks` may be emitted now.
  static bool comes_before(uint64_t ticks, uint64_t limit, bool limit_first) {
    return ticks < limit || (ticks == limit && !limit_first);
  }

  uint64_t key_;
  uint64_t order_;
};

// Merges until all sources are at their end or the sink wants no more.
absl::Status merge(std::vector<std::unique_ptr<RecordSource>> sources, Emitter& emitter);

// Returns a source of one writer's exclusive blocks, in the order in which it wrote them.
// `blocks` are sorted by serial, and not all are skipped. The source ends early when the
// emitter is past the thread's part of its range. Input, blocks and findings must outlive
// the source. At any time it has a window of one block in memory.
std::unique_ptr<RecordSource> exclusive_source(Input& input,
                                               std::span<const BlockRef> blocks,
                                               ThreadIndex thread,
                                               const SkippedBlocks& skipped,
                                               uint64_t order, FindingLog& findings);

// ---- The records of one block of full form, in order of time ----

// Which other blocks of the chain may have been overwritten. After those, a STACK need
// not agree with the records before it.
enum class ChainGaps : uint8_t {
  kNone,
  kAnywhere,
  kBefore,  // the block is the oldest one
};

// `first_ticks`: of the block's earliest record, before which the merge need not copy the
// block. All references must outlive the source.
std::unique_ptr<RecordSource> shared_source(Input& input, const BlockRef& block,
                                            uint64_t first_ticks, uint64_t order,
                                            const ClockMap& clock, ChainGaps gaps,
                                            FindingLog& findings);

}  // namespace arctrace::reader
