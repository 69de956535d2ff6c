#include "reader/trace/exclusive_source.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/trace/record_types.hpp"
#include "reader/trace/shared_block.hpp"

namespace arctrace::reader {
namespace {

// Bytes of a block that are copied at a time, unless one record needs more.
constexpr uint32_t kWindowSize = 32u << 10;

class ExclusiveSource : public RecordSource {
 public:
  ExclusiveSource(Input& input, std::span<const BlockRef> blocks, ThreadIndex thread,
                  const SkippedBlocks& skipped, uint64_t order, FindingLog& findings)
      : RecordSource(blocks[skipped.first == 0 ? skipped.end : 0].base_ticks, order),
        input_(input),
        findings_(findings),
        blocks_(blocks),
        skipped_(skipped),
        thread_(thread) {}

  absl::StatusOr<Result> drain(uint64_t limit, bool limit_first,
                               Emitter& emitter) override {
    if (!opened_) {
      opened_ = true;
      gap_ = blocks_.front().serial != 0;
      skip_blocks();
      if (absl::Status status = open_block(emitter); !status.ok()) return status;
      if (absl::Status status = advance(emitter); !status.ok()) return status;
    }
    while (!ended_) {
      if (!comes_before(record_.ticks, limit, limit_first)) {
        key_ = record_.ticks;
        return Result::kMore;
      }
      if (emitter.is_past(thread_)) break;  // by a record in a shared block, perhaps
      if (!emitter.emit(record_, thread_, blocks_[block_], gap_)) {
        return Result::kStopped;
      }
      gap_ = false;
      if (absl::Status status = advance(emitter); !status.ok()) return status;
    }
    return Result::kEnd;
  }

 private:
  // Moves record_ on to the next record to emit, or sets ended_.
  absl::Status advance(Emitter& emitter) {
    const uint64_t previous = record_.ticks;
    for (;;) {
      switch (cursor_.next_untrusted(record_)) {
        case RecordCursor::Result::kRecord:
          if (!accept(emitter)) break;
          // A record may have been stamped before the records of a signal handler and
          // written after them. It stays after them: what the handler called has
          // returned.
          record_.ticks = std::max(record_.ticks, previous);
          return absl::OkStatus();
        case RecordCursor::Result::kWindow:
          if (absl::Status status = read_window(); !status.ok()) return status;
          break;
        case RecordCursor::Result::kBroken:
          report_broken(cursor_, blocks_[block_], findings_);
          gap_ = true;
          [[fallthrough]];
        case RecordCursor::Result::kEnd:
          ++block_;
          skip_blocks();
          if (block_ == blocks_.size()) {
            ended_ = true;
            return absl::OkStatus();
          }
          gap_ |= blocks_[block_].serial != blocks_[block_ - 1].serial + 1;
          if (absl::Status status = open_block(emitter); !status.ok()) return status;
          break;
      }
    }
  }

  // Whether the record that the cursor gave is to be emitted.
  bool accept(Emitter& emitter) {
    const BlockRef& block = blocks_[block_];
    if (record_.in_progress) {
      emitter.count_in_progress(record_, block.writer, block);
      return false;
    }
    const RecordClass record_class = class_of(record_.type);
    if (record_class == RecordClass::kFiller) return false;
    if (!check_body_untrusted(record_, block.chunk, findings_)) {
      emitter.count_invalid(1);
      return false;
    }
    if (record_class != RecordClass::kData && record_class != RecordClass::kStream) {
      findings_.add(Rule::kRecordClass,
                    absl::StrCat("type ", record_.type, " in an exclusive block"),
                    block.chunk, record_.offset);
    }
    return true;
  }

  void skip_blocks() {
    if (block_ != skipped_.first || skipped_.end <= block_) return;
    block_ = skipped_.end;
    gap_ = block_ != 0 && block_ != blocks_.size() &&
           blocks_[block_].serial != blocks_[block_ - 1].serial + 1;
  }

  absl::Status open_block(Emitter& emitter) {
    const BlockRef& block = blocks_[block_];
    emitter.count_block(block);
    cursor_ = RecordCursor(true, block.base_ticks, block.live);
    cursor_.set_window({}, block.records_offset(), false);
    return read_window();
  }

  // Gives the cursor a new window, from its offset on.
  absl::Status read_window() {
    const BlockRef& block = blocks_[block_];
    const uint32_t begin = cursor_.offset();
    const uint32_t size =
        std::min(std::max(kWindowSize, cursor_.wanted()), block.size - begin);
    window_.resize(size);
    const absl::StatusOr<size_t> there =
        copy_block_untrusted(input_, block, begin, window_, findings_);
    if (!there.ok()) return there.status();
    gap_ |= *there < size;
    const bool last = *there < size || begin + size == block.size;
    cursor_.set_window(std::span(window_).first(*there), begin, last);
    return absl::OkStatus();
  }

  Input& input_;
  FindingLog& findings_;
  std::span<const BlockRef> blocks_;
  const SkippedBlocks skipped_;
  ThreadIndex thread_;
  size_t block_ = 0;  // index into blocks_
  bool opened_ = false;
  bool ended_ = false;
  bool gap_ = false;  // the next record follows a gap
  RecordCursor cursor_;
  RawRecord record_;  // the next one, in window_
  std::vector<std::byte> window_;
};

}  // namespace

std::unique_ptr<RecordSource> exclusive_source(Input& input,
                                               std::span<const BlockRef> blocks,
                                               ThreadIndex thread,
                                               const SkippedBlocks& skipped,
                                               uint64_t order, FindingLog& findings) {
  return std::make_unique<ExclusiveSource>(input, blocks, thread, skipped, order,
                                           findings);
}

}  // namespace arctrace::reader
