#include "reader/trace/shared_source.hpp"

#include "reader/trace/shared_block.hpp"

namespace arctrace::reader {
namespace {

class SharedSource : public RecordSource {
 public:
  SharedSource(Input& input, const BlockRef& ref, uint64_t first_ticks, uint64_t order,
               const ClockMap& clock, bool may_follow_gap, FindingLog& findings)
      : RecordSource(first_ticks, order),
        input_(input),
        ref_(ref),
        clock_(clock),
        findings_(findings),
        may_follow_gap_(may_follow_gap) {}

  absl::StatusOr<Result> drain(uint64_t limit, bool limit_first,
                               Emitter& emitter) override {
    if (!loaded_) {
      loaded_ = true;
      if (absl::Status status = load(emitter); !status.ok()) return status;
    }
    const std::vector<RawRecord>& records = block_.records();
    for (; next_ < records.size(); ++next_) {
      const RawRecord& record = records[next_];
      if (!comes_before(record.ticks, limit, limit_first)) {
        key_ = record.ticks;
        return Result::kMore;
      }
      const ThreadIndex thread = emitter.thread_of(record.writer);
      if (ref_.kind == BlockRef::Kind::kShared && emitter.passes_over(record, thread)) {
        continue;
      }
      const bool after_gap = may_follow_gap_ && record.type == ARCTRACE_TYPE_STACK;
      if (!emitter.emit(record, thread, ref_, after_gap)) {
        return Result::kStopped;
      }
    }
    return Result::kEnd;
  }

 private:
  absl::Status load(Emitter& emitter) {
    if (absl::Status status = block_.load_untrusted(input_, ref_, findings_);
        !status.ok()) {
      return status;
    }
    if (ref_.of_kernel()) block_.convert_times(clock_);
    emitter.count_block(ref_);
    emitter.count_invalid(block_.invalid());
    for (const RawRecord& record : block_.in_progress()) {
      emitter.count_in_progress(record, record.writer, ref_);
    }
    return absl::OkStatus();
  }

  Input& input_;
  const BlockRef& ref_;
  const ClockMap& clock_;
  FindingLog& findings_;
  bool may_follow_gap_;
  bool loaded_ = false;
  size_t next_ = 0;
  SharedBlock block_;
};

}  // namespace

std::unique_ptr<RecordSource> shared_source(Input& input, const BlockRef& block,
                                            uint64_t first_ticks, uint64_t order,
                                            const ClockMap& clock, bool may_follow_gap,
                                            FindingLog& findings) {
  return std::make_unique<SharedSource>(input, block, first_ticks, order, clock,
                                        may_follow_gap, findings);
}

}  // namespace arctrace::reader
