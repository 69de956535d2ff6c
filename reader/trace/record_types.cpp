#include "reader/trace/record_types.hpp"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>

#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace arctrace::reader {

// A missing field, or a double one, does not compile: `throw` is not a constant
// expression.
consteval BodyLayout::BodyLayout(uint32_t size, std::initializer_list<BodyField> fields)
    : size_(size) {
  constexpr size_t kWidths[] = {1, 2, 4, 8, 4, 8, 1};  // by BodyField::Type
  size_t end = 0;
  for (const BodyField& field : fields) {
    if (field.offset != end) throw "the fields have a gap";
    end +=
        kWidths[static_cast<size_t>(field.type)] * (field.count == 0 ? 1 : field.count);
    fields_[field_count_++] = field;
  }
  if (end != size) throw "the last fields are missing";
}

consteval BodyLayout BodyLayout::with(BodyText text) const {
  BodyLayout layout = *this;
  layout.texts_[layout.text_count_++] = text;
  return layout;
}

consteval BodyLayout BodyLayout::with_elements(
    std::string_view count, std::initializer_list<BodyField> element) const {
  BodyLayout layout = *this;
  layout.count_ = count;
  for (const BodyField& field : element) layout.element_[layout.element_size_++] = field;
  return layout;
}

namespace {

template <class T>
consteval BodyField::Type type_of() {
  using Type = BodyField::Type;
  if (std::is_same_v<T, char>) return Type::kChar;
  if (sizeof(T) == 1) return Type::kU8;
  if (sizeof(T) == 2) return Type::kU16;
  if (sizeof(T) == 4) return std::is_signed_v<T> ? Type::kS32 : Type::kU32;
  return std::is_signed_v<T> ? Type::kS64 : Type::kU64;
}

template <class T>
consteval BodyField field(std::string_view name, size_t offset) {
  return {name, type_of<std::remove_extent_t<T>>(), static_cast<uint16_t>(offset),
          static_cast<uint16_t>(std::extent_v<T>)};
}

// FIELDS(part, a, b) is FIELD(part, a), FIELD(part, b). A macro is not expanded within
// itself, so each field but the first takes another scan; EXPAND makes enough of them.
#define FIELD(part, name) field<decltype(part::name)>(#name, offsetof(part, name))
#define FIELDS(part, ...) EXPAND(NEXT_FIELD(part, __VA_ARGS__))
#define NEXT_FIELD(part, name, ...) \
  FIELD(part, name) __VA_OPT__(, NEXT_FIELD_AGAIN PARENTHESES(part, __VA_ARGS__))
#define NEXT_FIELD_AGAIN() NEXT_FIELD
#define PARENTHESES ()
#define EXPAND(...) EXPAND_4(EXPAND_4(EXPAND_4(__VA_ARGS__)))
#define EXPAND_4(...) EXPAND_1(EXPAND_1(EXPAND_1(EXPAND_1(__VA_ARGS__))))
#define EXPAND_1(...) __VA_ARGS__

// BODY(lost, cause, flags) is the layout of arctrace_lost_body, which has these fields.
#define BODY(body, ...)                      \
  BodyLayout(sizeof(arctrace_##body##_body), \
             {FIELDS(arctrace_##body##_body, __VA_ARGS__)})
// TEXT(thread, name) is the text whose size is arctrace_thread_body's field name_size.
#define TEXT(body, name) \
  BodyText { #name, offsetof(arctrace_##body##_body, name##_size) }
#define TYPE(type) ARCTRACE_TYPE_##type, #type

struct TypeInfo {
  uint16_t type;
  std::string_view name;
  BodyLayout body;
};

// One entry for each type, in the order of SPEC.md's table.
// clang-format off
constexpr TypeInfo kTypes[] = {
    {TYPE(PAD), {}},
    {TYPE(TIME), BODY(time, ticks)},
    {TYPE(STACK), BODY(stack, depth, count)
         .with_elements("count", {{"key", BodyField::Type::kU64}})},
    {TYPE(LOST), BODY(lost, cause, flags, count, since_ticks)},
    {TYPE(ENTER), BODY(frame, key)},
    {TYPE(EXIT), {}},
    {TYPE(EXIT_NAMED), BODY(frame, key)},
    {TYPE(UNWIND), BODY(unwind, count)},
    {TYPE(VFORK_BEGIN), {}},
    {TYPE(VFORK_END), BODY(vfork_end, child_pid)},
    {TYPE(ARGUMENTS), BODY(args, count)
         .with_elements("count", {FIELDS(arctrace_arg_head, kind, argument, size)})},
    {TYPE(RESULT), BODY(args, count)
         .with_elements("count", {FIELDS(arctrace_arg_head, kind, argument, size)})},
    {TYPE(COROUTINE), BODY(coroutine, coroutine, depth, count)
         .with_elements("count", {{"key", BodyField::Type::kU64}})},
    {TYPE(EVENT), BODY(event, event)},
    {TYPE(INSTANT), BODY(instant, name)},
    {TYPE(COUNTER), BODY(counter, name, value)},
    {TYPE(TEXT), BODY(text, text_size).with(TEXT(text, text))},
    {TYPE(MARK), BODY(text, text_size).with(TEXT(text, text))},
    {TYPE(PROCESS), BODY(process, process, parent, pid, ppid, uid, origin, start_ticks,
         executable_size, arguments_size).with(TEXT(process, executable))
         .with(TEXT(process, arguments))},
    {TYPE(THREAD), BODY(thread, writer, process, tid, name_size, start_ticks)
         .with(TEXT(thread, name))},
    {TYPE(MODULE), BODY(module, process, flags, start, end, bias, device, inode,
         build_id_size, path_size).with(TEXT(module, build_id)).with(TEXT(module, path))},
    {TYPE(MODULE_GONE), BODY(module_gone, process, reserved, start)},
    {TYPE(STRING), BODY(string, process, id, text_size).with(TEXT(string, text))},
    {TYPE(EVENT_LAYOUT), BODY(event_layout, process, id, level, field_count, name_size)
         .with(TEXT(event_layout, name))
         .with_elements("field_count", {FIELDS(arctrace_layout_field, type, name_size)})},
    {TYPE(PROCESS_END), BODY(process_end, process, how, status)},
    {TYPE(PID_NAMESPACE), BODY(pid_namespace, process, inode)},
    {TYPE(JITDUMP), BODY(jitdump, process, path_size).with(TEXT(jitdump, path))},
    {TYPE(UNTRACED), BODY(untraced, process, why, path_size).with(TEXT(untraced, path))},
    {TYPE(PHASE), BODY(phase, process, phase)},
    {TYPE(AGE), BODY(age, process, reserved, age_ns)},
    {TYPE(WAITING), BODY(waiting, process, writer, ticks_min, written, count)
         .with_elements("count", {FIELDS(arctrace_waiting_call, key, ticks)})},
    {TYPE(PATCHES), BODY(patches, process, verdict, count, listed, reserved)
         .with_elements("listed", {{"function", BodyField::Type::kU64}})},
    {TYPE(INHERITED), BODY(inherited, process, depth, count)
         .with_elements("count", {{"key", BodyField::Type::kU64}})},
    {TYPE(HOOKED), BODY(hooked, process, kind, reserved, function)},
    {TYPE(SYSTEM), BODY(system, byte_order, page_size, cpus, host_size, kernel_size,
         arguments_size).with(TEXT(system, host)).with(TEXT(system, kernel))
         .with(TEXT(system, arguments))},
    {TYPE(CLOCK_SYNC), BODY(clock_sync, ticks, monotonic_ns, realtime_ns)},
    {TYPE(WRITER_END), BODY(writer_end, writer, how)},
    {TYPE(SESSION), BODY(session, what, detail)},
    {TYPE(CHILD_STATUS), BODY(child_status, child_pid, status)},
    {TYPE(TOTALS), BODY(totals, written, lost)},
    {TYPE(CODE), BODY(code, process, name_size, start, size, since_monotonic_ns)
         .with(TEXT(code, name))},
    {TYPE(CODE_FILE), BODY(code_file, process, kind, names, left_out, flags, path_size)
         .with(TEXT(code_file, path))},
    {TYPE(ENABLED), BODY(enabled, gate, filter_size).with(TEXT(enabled, filter))},
    {TYPE(EXEC), BODY(exec, pid, reserved, within_ticks)},
    {TYPE(COUNTS), BODY(counts, processes, threads)},
    {TYPE(ALIVE), BODY(alive, writer)},
    {TYPE(HOOK_COSTS), BODY(hook_costs, count)
         .with_elements("count", {FIELDS(arctrace_hook_cost, kind, inside_ps,
         outside_ps)})},
    {TYPE(FILES), BODY(files, what, number, begin_ticks, records, kernel, lost,
         removed_files, flags, removed_records, removed_kernel, removed_ticks)},
    {TYPE(CLOCK_WORD), BODY(clock_word, stores, mean_age_ns, longest_ns)},
    {TYPE(SWITCH), BODY(switch, cpu, tgid, prev_state, next_tid, next_tgid)},
    {TYPE(WAKING), BODY(waking, cpu, tgid, woken_tid, woken_tgid, context)},
    {TYPE(FORKED), BODY(forked, cpu, tgid, child_tid, child_tgid)},
    {TYPE(EXECED), BODY(execed, cpu, tgid, program)},
    {TYPE(EXITED), BODY(exited, cpu, tgid, status, status_of)},
    {TYPE(SYSCALL), BODY(syscall, cpu, tgid, number, reserved)},
    {TYPE(SYSCALL_END), BODY(syscall_end, cpu, tgid, result)},
    {TYPE(PAGE_FAULT), BODY(page_fault, cpu, tgid, address, error, reserved)},
    {TYPE(SIGNAL), BODY(signal, cpu, tgid, signal, action)},
    {TYPE(CONTENTION), BODY(contention, cpu, tgid, lock, flags, reserved)},
    {TYPE(CONTENTION_END), BODY(contention_end, cpu, tgid, lock, result, reserved)},
    {TYPE(BLOCK_IO), BODY(block_io, cpu, tgid, sector, device, bytes, operation,
         reserved)},
    {TYPE(BLOCK_IO_END), BODY(block_io_end, cpu, tgid, sector, device, bytes, operation,
         error)},
    {TYPE(SWITCH_IN), BODY(switch_in, cpu, tgid)},
    {TYPE(NUMBERED), BODY(numbered, cpu, tgid, child_tid, own_tid, pid_namespace,
         reserved)},
    {TYPE(NAMED), BODY(named, cpu, tgid, name)},
    {TYPE(INTERRUPT), BODY(interrupt, cpu, tgid, kind, number, duration_ns, name_size)
         .with(TEXT(interrupt, name))},
};
// clang-format on

#undef FIELD
#undef FIELDS
#undef NEXT_FIELD
#undef NEXT_FIELD_AGAIN
#undef PARENTHESES
#undef EXPAND
#undef EXPAND_4
#undef EXPAND_1
#undef BODY
#undef TEXT
#undef TYPE

static_assert(std::end(kTypes)[-1].type < kKnownTypes);

// An index into kTypes plus 1 by type; 0: unknown. So each record takes one look-up.
constexpr std::array<uint8_t, kKnownTypes> kIndices = [] {
  std::array<uint8_t, kKnownTypes> indices{};
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    indices[kTypes[i].type] = static_cast<uint8_t>(i + 1);
  }
  return indices;
}();

const TypeInfo* find(uint16_t type) {
  if (type >= kIndices.size() || kIndices[type] == 0) return nullptr;
  return &kTypes[kIndices[type] - 1u];
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

const BodyLayout* body_layout(uint16_t type) {
  const TypeInfo* info = find(type);
  return info == nullptr ? nullptr : &info->body;
}

}  // namespace arctrace::reader
