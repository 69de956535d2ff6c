// Copies a shared block, checks its records' bodies, and sorts them by time.
#include "reader/trace/shared_block.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "reader/trace/call_args.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

constexpr const char* kSizesTooLarge = "its sizes are larger than the record";

const char* lost_problem(std::span<const std::byte> body) {
  const auto lost = load_part_untrusted<arctrace_lost_body>(body);
  return lost.cause >= ARCTRACE_LOST_CAUSES ? "its cause is not one" : nullptr;
}

// `rest`: the part of the body after the fixed part.
const char* texts_problem(const BodyLayout& layout, std::span<const std::byte> body,
                          BodyReader& rest) {
  for (const BodyText& text : layout.texts()) {
    rest.bytes(load_part_untrusted<uint32_t>(body.subspan(text.size_offset)));
  }
  return rest.ok() ? nullptr : kSizesTooLarge;
}

// `body` begins with the record's arctrace_stack_body.
const char* stack_problem(std::span<const std::byte> body, const BodyReader& rest) {
  const auto stack = load_part_untrusted<arctrace_stack_body>(body);
  if (stack.count > stack.depth) return "it tells more frames than there are";
  return uint64_t{stack.count} * sizeof(uint64_t) > rest.rest().size()
             ? "its count is larger than the record"
             : nullptr;
}

const char* patches_problem(std::span<const std::byte> body, const BodyReader& rest) {
  const auto patches = load_part_untrusted<arctrace_patches_body>(body);
  if (patches.listed > patches.count) return "it lists more functions than there are";
  return uint64_t{patches.listed} * sizeof(uint64_t) > rest.rest().size()
             ? "its count is larger than the record"
             : nullptr;
}

const char* hook_costs_problem(std::span<const std::byte> body, const BodyReader& rest) {
  const uint64_t count = load_part_untrusted<arctrace_hook_costs_body>(body).count;
  return count * sizeof(arctrace_hook_cost) > rest.rest().size()
             ? "its count is larger than the record"
             : nullptr;
}

const char* arg_problem(const arctrace_arg_head& head) {
  const bool is_short_float = head.kind == ARCTRACE_VALUE_FLOAT && head.size < 4;
  return is_number_kind(head.kind) &&
                 (head.size > 8 || !std::has_single_bit(unsigned{head.size}) ||
                  is_short_float)
             ? "a number's size is not one"
             : nullptr;
}

const char* args_problem(std::span<const std::byte> body, BodyReader& rest) {
  const uint32_t count = load_part_untrusted<arctrace_args_body>(body).count;
  for (uint32_t i = 0; i < count; ++i) {
    const auto head = rest.read<arctrace_arg_head>();
    rest.bytes(head.size);
    if (!rest.ok()) return kSizesTooLarge;
    if (const char* problem = arg_problem(head)) return problem;
  }
  return nullptr;
}

const char* layout_problem(std::span<const std::byte> body, BodyReader& rest) {
  const uint32_t count =
      load_part_untrusted<arctrace_event_layout_body>(body).field_count;
  for (uint32_t i = 0; i < count; ++i) {
    const auto field = rest.read<arctrace_layout_field>();
    rest.bytes(field.name_size);
    if (!rest.ok()) return kSizesTooLarge;
    if (field.type < ARCTRACE_FIELD_U8 || field.type > ARCTRACE_FIELD_STRING) {
      return "a field's type is not known";
    }
  }
  return nullptr;
}

}  // namespace

const char* body_problem_untrusted(uint16_t type, std::span<const std::byte> body) {
  const BodyLayout* layout = body_layout(type);
  if (layout == nullptr) return nullptr;
  if (body.size() < layout->size()) return "it is too short for its type";
  if (layout->is_fixed()) {
    return type == ARCTRACE_TYPE_LOST ? lost_problem(body) : nullptr;
  }
  BodyReader rest(body.subspan(layout->size()));
  if (const char* problem = texts_problem(*layout, body, rest)) return problem;
  switch (type) {
    case ARCTRACE_TYPE_STACK:
      return stack_problem(body, rest);
    case ARCTRACE_TYPE_COROUTINE:
      return stack_problem(body.subspan(offsetof(arctrace_coroutine_body, depth)), rest);
    case ARCTRACE_TYPE_INHERITED:
      return stack_problem(body.subspan(offsetof(arctrace_inherited_body, depth)), rest);
    case ARCTRACE_TYPE_PATCHES:
      return patches_problem(body, rest);
    case ARCTRACE_TYPE_HOOK_COSTS:
      return hook_costs_problem(body, rest);
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      return args_problem(body, rest);
    case ARCTRACE_TYPE_EVENT_LAYOUT:
      return layout_problem(body, rest);
    default:
      return nullptr;
  }
}

// ---- The block --------------------------------------------------------------------

namespace {

bool earlier(const RawRecord& a, const RawRecord& b) { return a.ticks < b.ticks; }

// Whether a record of `type` may stand in a block of `kind`.
bool belongs(uint16_t type, BlockRef::Kind kind) {
  switch (class_of(type)) {
    case RecordClass::kFiller:
      return true;
    case RecordClass::kStream:
      // The collector also writes LOST for writers that no longer can, and STACK of
      // threads that write nothing.
      return kind != BlockRef::Kind::kDefinitions &&
             (kind != BlockRef::Kind::kCollector || type == ARCTRACE_TYPE_LOST ||
              type == ARCTRACE_TYPE_STACK);
    case RecordClass::kData:
    case RecordClass::kKernel:
      return kind == BlockRef::Kind::kShared;
    case RecordClass::kDefinition:
      // The collector also writes THREAD for threads that write nothing.
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
  RecordCursor cursor(ARCTRACE_FORM_FULL, 0, false);
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

// Sorts by insertion, which moves few records of a block that is nearly sorted, as most
// are. A budget of moves bounds the time for other blocks.
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
