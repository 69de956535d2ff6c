#include "reader/trace/shared_source.hpp"

#include <absl/container/flat_hash_map.h>
#include <arctrace/format.h>

#include "reader/trace/shared_block.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// Finds, in the oldest block of the chain in overwrite mode, the exits of calls whose
// entries were in a block that gave way. Outside of signal handlers a writer begins with
// a STACK there (REC-9), so these are of handlers that were running.
class OverwrittenEntries {
 public:
  // The next record of the block.
  bool left_by(const RawRecord& record) {
    if (record.type == ARCTRACE_TYPE_STACK) {
      open_[record.writer] = kKnown;
      return false;
    }
    const bool is_enter = record.type == ARCTRACE_TYPE_ENTER;
    const bool is_exit =
        record.type == ARCTRACE_TYPE_EXIT || record.type == ARCTRACE_TYPE_EXIT_NAMED;
    if (!is_enter && !is_exit) return false;
    uint64_t& open = open_[record.writer];
    if (open == kKnown) return false;
    if (is_exit && open == 0) return true;
    if (is_enter) {
      ++open;
    } else {
      --open;
    }
    return false;
  }

 private:
  static constexpr uint64_t kKnown = UINT64_MAX;  // there was a STACK

  absl::flat_hash_map<uint32_t, uint64_t> open_;  // calls of the block, by writer
};

class SharedSource : public RecordSource {
 public:
  SharedSource(Input& input, const BlockRef& ref, uint64_t first_ticks, uint64_t order,
               const ClockMap& clock, ChainGaps gaps, FindingLog& findings)
      : RecordSource(first_ticks, order),
        input_(input),
        ref_(ref),
        clock_(clock),
        findings_(findings),
        gaps_(gaps) {}

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
      const bool has_no_entry =
          gaps_ == ChainGaps::kBefore && overwritten_.left_by(record);
      if (ref_.kind == BlockRef::Kind::kShared &&
          emitter.passes_over(record, thread, ref_)) {
        continue;
      }
      const bool after_gap = has_no_entry || (gaps_ != ChainGaps::kNone &&
                                              record.type == ARCTRACE_TYPE_STACK);
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
  ChainGaps gaps_;
  OverwrittenEntries overwritten_;
  bool loaded_ = false;
  size_t next_ = 0;
  SharedBlock block_;
};

}  // namespace

std::unique_ptr<RecordSource> shared_source(Input& input, const BlockRef& block,
                                            uint64_t first_ticks, uint64_t order,
                                            const ClockMap& clock, ChainGaps gaps,
                                            FindingLog& findings) {
  return std::make_unique<SharedSource>(input, block, first_ticks, order, clock, gaps,
                                        findings);
}

}  // namespace arctrace::reader
