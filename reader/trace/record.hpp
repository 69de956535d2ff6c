// Records: as the merge hands them out in order of time, the parts of their bodies, and
// their form in a block. A Record does not point into shared memory.
#pragma once

#include <arctrace/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "reader/trace/findings.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace::reader {

// Dense indices into Definitions; kNoIndex: unknown.
using ThreadIndex = uint32_t;
using ProcessIndex = uint32_t;
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// One committed record. `body` is what follows the head. It is valid during the call that
// hands the record out, and its size has been checked (shared_block.hpp).
struct Record {
  uint64_t ticks;
  int64_t time_ns;  // since the session's start
  ThreadIndex thread;
  uint16_t type;  // enum arctrace_record_type
  bool compact;   // it stands in an exclusive block, of whatever form
  // It is the thread's first record after a gap in the serials of its blocks (overwritten
  // or lost ones): the thread's stack is not known until the next STACK. An EXIT with
  // this flag leaves a call whose ENTER was overwritten.
  bool after_gap;
  // It is the thread's first record after others that the reader of a range skipped: the
  // next STACK gives its stack.
  bool after_skip;
  std::span<const std::byte> body;
  uint64_t chunk;   // the sequence of its chunk, or in a buffer the index of its block
  uint32_t offset;  // in bytes, in that chunk or block
};

// Takes a record. Returns false to stop the reading.
using RecordSink = std::function<bool(const Record&)>;

// A stretch of time of a trace: [from_ns, until_ns), in nanoseconds since the session's
// start.
struct TimeRange {
  int64_t from_ns = INT64_MIN;
  int64_t until_ns = INT64_MAX;  // exclusive

  bool is_all() const { return from_ns == INT64_MIN && until_ns == INT64_MAX; }
  bool contains(int64_t time_ns) const {
    return time_ns >= from_ns && time_ns < until_ns;
  }
};

// The parts of a record's body, taken from front to back.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the parts of a body in turn. Parts beyond the body's end are zero or empty, and
// ok() is false from then on.
class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> body) : rest_(body) {}

  // Reads the next sizeof(Part) bytes: a struct of arctrace/format/, or a number.
  template <class Part>
  Part read() {
    return load_part_untrusted<Part>(take(sizeof(Part)));
  }
  // Reads `size` bytes; the fill up to a multiple of 4 is skipped.
  std::span<const std::byte> bytes(uint32_t size) {
    const uint64_t padded = (uint64_t{size} + 3) / 4 * 4;
    return take(padded).first(ok_ ? size : 0);
  }
  std::string_view text(uint32_t size) { return as_text(bytes(size)); }

  bool ok() const { return ok_; }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return taken;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// A record as it stands in a block; its body has not been checked.
struct RawRecord {
  uint64_t ticks = 0;
  uint32_t writer = 0;  // full form only
  uint32_t offset = 0;  // in the block or chunk payload
  uint16_t type = 0;
  bool in_progress = false;
  std::span<const std::byte> body;  // in the window
};

// The walk from record to record through one block (SPEC.md REC-1 to REC-4): the records
// after a block's header, or those of a RECORDS chunk, in the order in which they stand.
// The bytes come in windows, so that a large block needs no large copy.
class RecordCursor {
 public:
  enum class Result : uint8_t {
    kRecord,
    kEnd,     // of the last window
    kWindow,  // the record at offset() needs a window of at least wanted() bytes
    kBroken,  // rule() is broken at offset(); no later record can be found
  };

  RecordCursor() = default;
  // `ends_at_hole`: the first hole is taken for the end. An exclusive block has no hole
  // before its last record. But if it was copied while its owner wrote, words may follow
  // of records that were begun after the copy had passed their start.
  RecordCursor(uint16_t form, uint64_t base_ticks, bool ends_at_hole)
      : form_(form), ends_at_hole_(ends_at_hole), base_ticks_(base_ticks) {}
  template <std::same_as<bool> Bool>
  RecordCursor(Bool, uint64_t, bool) = delete;  // a bool is no form

  // Sets the window: the bytes from `offset` on; `last`: no other window follows.
  // REQUIRES: window.size() is a multiple of 4.
  void set_window(std::span<const std::byte> window, uint32_t offset, bool last) {
    window_ = window;
    window_offset_ = offset;
    position_ = 0;
    last_ = last;
  }

  Result next_untrusted(RawRecord& out) {
    const uint32_t head = head_size(form_);
    for (;;) {
      const size_t left = window_.size() - position_;
      if (left < 4) return run_out(1);
      const std::span<const std::byte> rest = window_.subspan(position_);
      const auto word0 = load_part_untrusted<uint32_t>(rest);
      if (word0 == ARCTRACE_FILL) {
        if (ends_at_hole_) return Result::kEnd;
        met_hole_ = true;
        position_ += 4;
        continue;
      }
      const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
      const auto type =
          static_cast<uint16_t>(word0 >> ARCTRACE_TYPE_SHIFT & ARCTRACE_TYPE_MASK);
      if (length < head || length % 4 != 0) return broken(Rule::kRecordLength);
      if (type == 0) return broken(Rule::kRecordType);
      if (length > left) return run_out(length);
      out.type = type;
      out.in_progress = (word0 & ARCTRACE_IN_PROGRESS) != 0;
      out.offset = window_offset_ + static_cast<uint32_t>(position_);
      out.body = window_.subspan(position_ + head, length - head);
      if (is_exclusive_form(form_)) {
        out.ticks = base_ticks_;
        if (form_ == ARCTRACE_FORM_COMPACT) {
          out.ticks += load_part_untrusted<arctrace_compact_head>(rest).tick_delta;
          if (out.ticks < base_ticks_) out.ticks = UINT64_MAX;
        }
        if (type == ARCTRACE_TYPE_TIME && !out.in_progress && !rebase(out)) {
          return broken(Rule::kRecordTime);
        }
      } else {
        const auto full = load_part_untrusted<arctrace_full_head>(rest);
        out.writer = full.writer;
        out.ticks = full.ticks;
      }
      position_ += length;
      return Result::kRecord;
    }
  }

  // The offset of the next record, or of the part that is broken.
  uint32_t offset() const { return window_offset_ + static_cast<uint32_t>(position_); }
  uint32_t wanted() const { return wanted_; }
  Rule rule() const { return rule_; }
  bool met_hole() const { return met_hole_; }

 private:
  // Sets the base of the deltas after a TIME, which count from it. If the TIME is too
  // short or goes back, no later time is known.
  bool rebase(const RawRecord& record) {
    if (record.body.size() < sizeof(arctrace_time_body)) return false;
    const uint64_t ticks = load_part_untrusted<arctrace_time_body>(record.body).ticks;
    if (ticks < base_ticks_) return false;
    base_ticks_ = ticks;
    return true;
  }

  Result broken(Rule rule) {
    rule_ = rule;
    return Result::kBroken;
  }

  // Handles a window with fewer than the `wanted` bytes that are needed here.
  Result run_out(uint32_t wanted) {
    if (!last_) {
      wanted_ = wanted;
      return Result::kWindow;
    }
    return wanted <= 1 ? Result::kEnd : broken(Rule::kRecordLength);
  }

  uint16_t form_ = ARCTRACE_FORM_COMPACT;
  bool ends_at_hole_ = false;
  bool met_hole_ = false;
  bool last_ = true;
  Rule rule_ = Rule::kRecordLength;
  uint32_t wanted_ = 0;
  uint32_t window_offset_ = 0;
  uint64_t base_ticks_ = 0;
  size_t position_ = 0;
  std::span<const std::byte> window_;
};

}  // namespace arctrace::reader
