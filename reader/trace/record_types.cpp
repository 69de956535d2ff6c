#include "reader/trace/record_types.hpp"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <array>
#include <bit>

#include "reader/trace/bytes.hpp"
#include "reader/trace/call_args.hpp"

namespace arctrace::reader {
namespace {

struct TypeInfo {
  uint16_t type;
  std::string_view name;
  uint32_t fixed_size;  // bytes of the body's fixed part
};

constexpr std::array kTypes = {
    TypeInfo{ARCTRACE_TYPE_PAD, "PAD", 0},
    TypeInfo{ARCTRACE_TYPE_TIME, "TIME", 8},
    TypeInfo{ARCTRACE_TYPE_STACK, "STACK", 8},
    TypeInfo{ARCTRACE_TYPE_LOST, "LOST", 24},
    TypeInfo{ARCTRACE_TYPE_ENTER, "ENTER", 8},
    TypeInfo{ARCTRACE_TYPE_EXIT, "EXIT", 0},
    TypeInfo{ARCTRACE_TYPE_EXIT_NAMED, "EXIT_NAMED", 8},
    TypeInfo{ARCTRACE_TYPE_UNWIND, "UNWIND", 4},
    TypeInfo{ARCTRACE_TYPE_VFORK_BEGIN, "VFORK_BEGIN", 0},
    TypeInfo{ARCTRACE_TYPE_VFORK_END, "VFORK_END", 4},
    TypeInfo{ARCTRACE_TYPE_ARGUMENTS, "ARGUMENTS", 4},
    TypeInfo{ARCTRACE_TYPE_RESULT, "RESULT", 4},
    TypeInfo{ARCTRACE_TYPE_EVENT, "EVENT", 4},
    TypeInfo{ARCTRACE_TYPE_INSTANT, "INSTANT", 4},
    TypeInfo{ARCTRACE_TYPE_COUNTER, "COUNTER", 12},
    TypeInfo{ARCTRACE_TYPE_TEXT, "TEXT", 4},
    TypeInfo{ARCTRACE_TYPE_MARK, "MARK", 4},
    TypeInfo{ARCTRACE_TYPE_PROCESS, "PROCESS", 40},
    TypeInfo{ARCTRACE_TYPE_THREAD, "THREAD", 24},
    TypeInfo{ARCTRACE_TYPE_MODULE, "MODULE", 56},
    TypeInfo{ARCTRACE_TYPE_MODULE_GONE, "MODULE_GONE", 16},
    TypeInfo{ARCTRACE_TYPE_STRING, "STRING", 12},
    TypeInfo{ARCTRACE_TYPE_EVENT_LAYOUT, "EVENT_LAYOUT", 20},
    TypeInfo{ARCTRACE_TYPE_PROCESS_END, "PROCESS_END", 12},
    TypeInfo{ARCTRACE_TYPE_PID_NAMESPACE, "PID_NAMESPACE", 8},
    TypeInfo{ARCTRACE_TYPE_JITDUMP, "JITDUMP", 8},
    TypeInfo{ARCTRACE_TYPE_UNTRACED, "UNTRACED", 12},
    TypeInfo{ARCTRACE_TYPE_SYSTEM, "SYSTEM", 24},
    TypeInfo{ARCTRACE_TYPE_CLOCK_SYNC, "CLOCK_SYNC", 24},
    TypeInfo{ARCTRACE_TYPE_WRITER_END, "WRITER_END", 8},
    TypeInfo{ARCTRACE_TYPE_SESSION, "SESSION", 8},
    TypeInfo{ARCTRACE_TYPE_CHILD_STATUS, "CHILD_STATUS", 8},
    TypeInfo{ARCTRACE_TYPE_TOTALS, "TOTALS", 72},
    TypeInfo{ARCTRACE_TYPE_CODE, "CODE", 32},
    TypeInfo{ARCTRACE_TYPE_CODE_FILE, "CODE_FILE", 32},
    TypeInfo{ARCTRACE_TYPE_SWITCH, "SWITCH", 20},
    TypeInfo{ARCTRACE_TYPE_WAKING, "WAKING", 20},
    TypeInfo{ARCTRACE_TYPE_FORKED, "FORKED", 16},
    TypeInfo{ARCTRACE_TYPE_EXECED, "EXECED", 24},
    TypeInfo{ARCTRACE_TYPE_EXITED, "EXITED", 16},
    TypeInfo{ARCTRACE_TYPE_SYSCALL, "SYSCALL", 16},
    TypeInfo{ARCTRACE_TYPE_SYSCALL_END, "SYSCALL_END", 16},
    TypeInfo{ARCTRACE_TYPE_PAGE_FAULT, "PAGE_FAULT", 24},
    TypeInfo{ARCTRACE_TYPE_SIGNAL, "SIGNAL", 16},
    TypeInfo{ARCTRACE_TYPE_CONTENTION, "CONTENTION", 24},
    TypeInfo{ARCTRACE_TYPE_CONTENTION_END, "CONTENTION_END", 24},
    TypeInfo{ARCTRACE_TYPE_BLOCK_IO, "BLOCK_IO", 32},
    TypeInfo{ARCTRACE_TYPE_BLOCK_IO_END, "BLOCK_IO_END", 32},
    TypeInfo{ARCTRACE_TYPE_SWITCH_IN, "SWITCH_IN", 8},
    TypeInfo{ARCTRACE_TYPE_NUMBERED, "NUMBERED", 24},
};

static_assert(kTypes.back().type < kKnownTypes);

// Index into kTypes plus 1 by type; 0: unknown. One look-up for every record.
constexpr std::array<uint8_t, kKnownTypes> kPlaces = [] {
  std::array<uint8_t, kKnownTypes> places{};
  for (size_t i = 0; i < kTypes.size(); ++i) {
    places[kTypes[i].type] = static_cast<uint8_t>(i + 1);
  }
  return places;
}();

const TypeInfo* find(uint16_t type) {
  if (type >= kPlaces.size() || kPlaces[type] == 0) return nullptr;
  return &kTypes[kPlaces[type] - 1u];
}

constexpr const char* kSizesTooLarge = "its sizes are larger than the record";

const char* sizes_problem(BodyReader body) {
  return body.ok() ? nullptr : kSizesTooLarge;
}

const char* stack_problem(BodyReader body) {
  const uint32_t depth = body.u32();
  const uint32_t count = body.u32();
  if (count > depth) return "it tells more frames than there are";
  return uint64_t{count} * 8 > body.rest().size() ? "its count is larger than the record"
                                                  : nullptr;
}

const char* lost_problem(BodyReader body) {
  return body.u32() >= ARCTRACE_LOST_CAUSES ? "its cause is not one" : nullptr;
}

const char* values_problem(BodyReader body) {
  const uint32_t count = body.u32();
  for (uint32_t i = 0; i < count && body.ok(); ++i) {
    const uint32_t head = body.u32();
    const uint32_t size = head >> 16;
    body.padded(size);
    const bool is_short_float = (head & 0xFF) == ARCTRACE_VALUE_FLOAT && size < 4;
    if (body.ok() && is_number_kind(head & 0xFF) &&
        (size > 8 || !std::has_single_bit(size) || is_short_float)) {
      return "a number's size is not one";
    }
  }
  return sizes_problem(body);
}

const char* layout_problem(BodyReader body) {
  for (int i = 0; i < 3; ++i) body.u32();
  const uint32_t fields = body.u32();
  body.padded(body.u32());
  for (uint32_t i = 0; i < fields && body.ok(); ++i) {
    const uint32_t type = body.u32();
    body.padded(body.u32());
    if (body.ok() && (type < ARCTRACE_FIELD_U8 || type > ARCTRACE_FIELD_STRING)) {
      return "a field's type is not known";
    }
  }
  return sizes_problem(body);
}

// Skips `words` 32-bit words, then that many sizes; then as many padded bytes follow.
template <size_t kSizes>
const char* padded_problem(BodyReader body, int words) {
  for (int i = 0; i < words; ++i) body.u32();
  std::array<uint32_t, kSizes> sizes;
  for (uint32_t& size : sizes) size = body.u32();
  for (const uint32_t size : sizes) body.padded(size);
  return sizes_problem(body);
}

// One text, behind a fixed part that has its size at `size_offset`.
const char* tail_problem(std::span<const std::byte> body, size_t size_offset,
                         size_t fixed) {
  const uint32_t size = load_u32(body.data() + size_offset);
  return (uint64_t{size} + 3) / 4 * 4 > body.size() - fixed ? kSizesTooLarge : nullptr;
}

}  // namespace

std::string_view type_name(uint16_t type) {
  const TypeInfo* info = find(type);
  return info == nullptr ? std::string_view() : info->name;
}

std::optional<uint16_t> type_of_name(std::string_view name) {
  // Debian's Abseil has a string_view of its own.
  const absl::string_view wanted(name.data(), name.size());
  for (const TypeInfo& info : kTypes) {
    if (absl::EqualsIgnoreCase(wanted, {info.name.data(), info.name.size()})) {
      return info.type;
    }
  }
  uint32_t number = 0;
  if (absl::SimpleAtoi(wanted, &number) && number <= ARCTRACE_TYPE_MASK) {
    return static_cast<uint16_t>(number);
  }
  return std::nullopt;
}

const char* body_problem_untrusted(uint16_t type, std::span<const std::byte> body) {
  const TypeInfo* info = find(type);
  if (info == nullptr) return nullptr;
  if (body.size() < info->fixed_size) return "it is too short for its type";
  const BodyReader reader(body);
  switch (type) {
    case ARCTRACE_TYPE_STACK:
      return stack_problem(reader);
    case ARCTRACE_TYPE_LOST:
      return lost_problem(reader);
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      return values_problem(reader);
    case ARCTRACE_TYPE_TEXT:
    case ARCTRACE_TYPE_MARK:
      return padded_problem<1>(reader, 0);
    case ARCTRACE_TYPE_PROCESS:
      return padded_problem<2>(reader, 8);
    case ARCTRACE_TYPE_THREAD:
      return tail_problem(body, 12, 24);
    case ARCTRACE_TYPE_MODULE:
      return padded_problem<2>(reader, 12);
    case ARCTRACE_TYPE_STRING:
      return padded_problem<1>(reader, 2);
    case ARCTRACE_TYPE_EVENT_LAYOUT:
      return layout_problem(reader);
    case ARCTRACE_TYPE_JITDUMP:
      return padded_problem<1>(reader, 1);
    case ARCTRACE_TYPE_UNTRACED:
      return padded_problem<1>(reader, 2);
    case ARCTRACE_TYPE_SYSTEM:
      return padded_problem<3>(reader, 3);
    case ARCTRACE_TYPE_CODE:
      return tail_problem(body, 4, 32);
    case ARCTRACE_TYPE_CODE_FILE:
      return padded_problem<1>(reader, 7);
    default:
      return nullptr;
  }
}

}  // namespace arctrace::reader
