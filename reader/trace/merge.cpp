// The k-way merge by time, and its sources: a writer's exclusive blocks, and a block in
// which several write.
#include "reader/trace/merge.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <utility>

#include "reader/trace/record_types.hpp"
#include "reader/trace/shared_block.hpp"
#include "src/base/untrusted_bytes.hpp"

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
      if (emitter.is_past(thread_)) break;  // as a record in a shared block may tell
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
          // written after them. It stays after them, because the functions that the
          // handler called have returned.
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
    cursor_ = RecordCursor(block.form, block.base_ticks, block.live);
    cursor_.set_window({}, block.records_offset(), false);
    return read_window();
  }

  // Gives the cursor a new window, which begins at the cursor's offset.
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

// ---- A block in which several write -----------------------------------------------

namespace {

// Finds, in the oldest block of the chain in overwrite mode, the exits of calls whose
// entries were in an overwritten block. Outside of signal handlers a writer begins with a
// STACK there (REC-9), so these exits are of handlers that were running.
class OverwrittenEntries {
 public:
  // Takes the next record of the block. Returns whether it is such an exit.
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
  static constexpr uint64_t kKnown = UINT64_MAX;  // the writer had a STACK

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

// ---- The merge --------------------------------------------------------------------

namespace {

// A binary min-heap of sources. The key stands beside the pointer, so that a comparison
// does not fetch the source itself.
class SourceHeap {
 public:
  struct Entry {
    uint64_t key;
    uint64_t order;
    std::unique_ptr<RecordSource> source;

    bool before(const Entry& other) const {
      return key != other.key ? key < other.key : order < other.order;
    }
  };

  explicit SourceHeap(std::vector<std::unique_ptr<RecordSource>> sources) {
    entries_.reserve(sources.size());
    for (auto& source : sources) {
      const uint64_t key = source->key();
      const uint64_t order = source->order();
      entries_.push_back({key, order, std::move(source)});
    }
    for (size_t i = entries_.size() / 2; i-- > 0;) sink(i);
  }

  bool empty() const { return entries_.empty(); }
  Entry& top() { return entries_.front(); }

  // Returns the best entry but the top, or nullptr.
  const Entry* second() const {
    if (entries_.size() < 2) return nullptr;
    if (entries_.size() == 2 || entries_[1].before(entries_[2])) return &entries_[1];
    return &entries_[2];
  }

  // Restores the heap after the key of the top has changed.
  void top_changed() {
    entries_.front().key = entries_.front().source->key();
    sink(0);
  }
  void remove_top() {
    std::swap(entries_.front(), entries_.back());
    entries_.pop_back();
    if (!entries_.empty()) sink(0);
  }

 private:
  void sink(size_t at) {
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= entries_.size()) return;
      if (child + 1 < entries_.size() && entries_[child + 1].before(entries_[child])) {
        ++child;
      }
      if (!entries_[child].before(entries_[at])) return;
      std::swap(entries_[at], entries_[child]);
      at = child;
    }
  }

  std::vector<Entry> entries_;
};

}  // namespace

absl::Status merge(std::vector<std::unique_ptr<RecordSource>> sources, Emitter& emitter) {
  SourceHeap heap(std::move(sources));
  while (!heap.empty()) {
    const SourceHeap::Entry* second = heap.second();
    const uint64_t limit = second == nullptr ? UINT64_MAX : second->key;
    const bool limit_first = second != nullptr && second->order < heap.top().order;
    const absl::StatusOr<RecordSource::Result> result =
        heap.top().source->drain(limit, limit_first, emitter);
    if (!result.ok()) return result.status();
    switch (*result) {
      case RecordSource::Result::kMore:
        heap.top_changed();
        break;
      case RecordSource::Result::kEnd:
        heap.remove_top();
        break;
      case RecordSource::Result::kStopped:
        return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace arctrace::reader
