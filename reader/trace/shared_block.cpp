#include "reader/trace/shared_block.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/trace/body_check.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

bool earlier(const RawRecord& a, const RawRecord& b) { return a.ticks < b.ticks; }

// Whether a record of `type` may stand in a block of `kind`.
bool belongs(uint16_t type, BlockRef::Kind kind) {
  switch (class_of(type)) {
    case RecordClass::kFiller:
      return true;
    case RecordClass::kStream:
      // The collector writes LOST too, for writers that no longer can, and STACK of
      // threads that write nothing.
      return kind != BlockRef::Kind::kDefinitions &&
             (kind != BlockRef::Kind::kCollector || type == ARCTRACE_TYPE_LOST ||
              type == ARCTRACE_TYPE_STACK);
    case RecordClass::kData:
    case RecordClass::kKernel:
      return kind == BlockRef::Kind::kShared;
    case RecordClass::kDefinition:
      // The collector writes THREAD too, for threads that write nothing.
      return kind == BlockRef::Kind::kDefinitions ||
             (kind == BlockRef::Kind::kCollector && type == ARCTRACE_TYPE_THREAD);
    case RecordClass::kCollector:
      return kind == BlockRef::Kind::kCollector;
  }
  return false;
}

}  // namespace

bool check_body_untrusted(const RawRecord& record, uint64_t chunk, FindingLog& findings) {
  const char* problem = body_problem_untrusted(record.type, record.body);
  if (problem == nullptr) return true;
  findings.add(Rule::kRecordBody,
               absl::StrCat(record_type_text(record.type), ": ", problem), chunk,
               record.offset);
  return false;
}

void report_broken(const RecordCursor& cursor, const BlockRef& ref,
                   FindingLog& findings) {
  if (ref.cut && cursor.rule() == Rule::kRecordLength) return;
  if (ref.live && cursor.met_hole()) return;
  findings.add(cursor.rule(), "no record can be found from here to the block's end",
               ref.chunk, cursor.offset());
}

absl::Status SharedBlock::load_untrusted(Input& input, const BlockRef& ref,
                                         FindingLog& findings) {
  records_.clear();
  in_progress_.clear();
  invalid_ = 0;
  const uint32_t begin = ref.records_offset();
  bytes_.resize(ref.size - begin);
  const absl::StatusOr<size_t> there =
      copy_block_untrusted(input, ref, begin, bytes_, findings);
  if (!there.ok()) return there.status();
  bytes_.resize(*there);
  walk(ref, findings);
  sort();
  return absl::OkStatus();
}

void SharedBlock::convert_times(const ClockMap& clock) {
  for (RawRecord& record : records_) record.ticks = clock.to_ticks(record.ticks);
}

void SharedBlock::walk(const BlockRef& ref, FindingLog& findings) {
  RecordCursor cursor(false, 0, false);
  cursor.set_window(bytes_, ref.records_offset(), true);
  RawRecord record;
  for (;;) {
    const RecordCursor::Result result = cursor.next_untrusted(record);
    if (result == RecordCursor::Result::kBroken) report_broken(cursor, ref, findings);
    if (result != RecordCursor::Result::kRecord) return;
    if (record.in_progress) {
      in_progress_.push_back(record);
    } else if (class_of(record.type) == RecordClass::kFiller) {
      continue;
    } else if (!check_body_untrusted(record, ref.chunk, findings)) {
      ++invalid_;
    } else {
      if (!belongs(record.type, ref.kind)) {
        findings.add(Rule::kRecordClass,
                     absl::StrCat(record_type_text(record.type), " in such a block"),
                     ref.chunk, record.offset);
      }
      records_.push_back(record);
    }
  }
}

// By insertion, which moves few records of a block that is nearly sorted, as most are. A
// budget of moves keeps it from being slow on others.
void SharedBlock::sort() {
  size_t moves_left = records_.size() * 4;
  for (size_t i = 1; i < records_.size(); ++i) {
    if (!earlier(records_[i], records_[i - 1])) continue;
    const RawRecord moved = records_[i];
    size_t to = i;
    while (to > 0 && earlier(moved, records_[to - 1]) && moves_left > 0) {
      records_[to] = records_[to - 1];
      --to;
      --moves_left;
    }
    records_[to] = moved;
    if (moves_left == 0) {
      // Insertion never moved a record past one of its own time, so offsets still give
      // the order among those.
      std::sort(records_.begin(), records_.end(),
                [](const RawRecord& a, const RawRecord& b) {
                  return std::pair(a.ticks, a.offset) < std::pair(b.ticks, b.offset);
                });
      return;
    }
  }
}

}  // namespace arctrace::reader
