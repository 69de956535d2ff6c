#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "reader/streams/record_describer.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

// ---- Words for numbers of the kernel's ---------------------------------------------

// The kernel's TASK_* bits, as far as they occur when a task leaves its CPU.
std::string state_text(uint32_t state) {
  if (state == 0) return "ready";
  if (state == ARCTRACE_SWITCH_UNKNOWN) return "blocked";
  if ((state & ARCTRACE_SWITCH_IO) != 0) return "waits for a disk";
  if ((state & 1) != 0) return "sleeps";
  if ((state & 2) != 0) return "sleeps uninterruptibly";
  if ((state & 4) != 0) return "stopped";
  if ((state & 8) != 0) return "traced";
  return "gone";
}

std::string context_text(uint32_t context) {
  if ((context & ARCTRACE_WAKING_UNKNOWN) != 0) return "unknown";
  if ((context & ARCTRACE_WAKING_TIMER) != 0) return "timer";
  if ((context & ARCTRACE_WAKING_RAISED) != 0) return "softirq of the thread";
  if ((context & ARCTRACE_WAKING_INTERRUPT) != 0) return "interrupt";
  return (context & ARCTRACE_WAKING_SOFTIRQ) != 0 ? "softirq" : "thread";
}

// Names the commonest of the kernel's REQ_OP_*.
std::string operation_text(uint32_t operation) {
  constexpr const char* kNames[] = {"read", "write", "flush", "discard"};
  return operation < std::size(kNames) ? kNames[operation] : "other";
}

// The kernel packs a device's numbers into 12 and 20 bits.
std::string device_text(uint32_t device) {
  return absl::StrCat(device >> 20, ":", device & 0xFFFFF);
}

std::string child_status_text(uint32_t status) {
  return wait_status_text(static_cast<int32_t>(status));
}

std::string patch_word(uint32_t verdict) {
  const std::string refusal = patch_refusal_text(verdict);
  return refusal.empty() ? patch_verdict_text(verdict).key : refusal;
}

// ---- Fields -------------------------------------------------------------------------

// How a field that is not just a number is shown.
struct Shown {
  uint16_t type;  // of record
  std::string_view field;
  enum class As : uint8_t { kNothing, kHex, kWord, kArguments } as;
  std::string (*word)(uint32_t) = nullptr;
};

constexpr Shown kShown[] = {
    // These fields repeat the record's own pid, tid and time, or the session's header.
    {ARCTRACE_TYPE_PROCESS, "pid", Shown::As::kNothing},
    {ARCTRACE_TYPE_PROCESS, "start_ticks", Shown::As::kNothing},
    {ARCTRACE_TYPE_THREAD, "tid", Shown::As::kNothing},
    {ARCTRACE_TYPE_THREAD, "start_ticks", Shown::As::kNothing},
    {ARCTRACE_TYPE_SYSTEM, "byte_order", Shown::As::kNothing},
    {ARCTRACE_TYPE_CODE_FILE, "flags", Shown::As::kNothing},  // but "cut", last
    {ARCTRACE_TYPE_MODULE_GONE, "start", Shown::As::kHex},
    {ARCTRACE_TYPE_HOOKED, "function", Shown::As::kHex},
    {ARCTRACE_TYPE_CODE, "start", Shown::As::kHex},
    {ARCTRACE_TYPE_CODE, "size", Shown::As::kHex},
    {ARCTRACE_TYPE_PAGE_FAULT, "address", Shown::As::kHex},
    {ARCTRACE_TYPE_CONTENTION, "lock", Shown::As::kHex},
    {ARCTRACE_TYPE_CONTENTION_END, "lock", Shown::As::kHex},
    {ARCTRACE_TYPE_PROCESS, "origin", Shown::As::kWord, origin_text},
    {ARCTRACE_TYPE_PROCESS_END, "how", Shown::As::kWord, process_end_text},
    {ARCTRACE_TYPE_PHASE, "phase", Shown::As::kWord, life_phase_text},
    {ARCTRACE_TYPE_UNTRACED, "why", Shown::As::kWord, untraced_text},
    {ARCTRACE_TYPE_PATCHES, "verdict", Shown::As::kWord, patch_word},
    {ARCTRACE_TYPE_HOOKED, "kind", Shown::As::kWord, hook_kind_text},
    {ARCTRACE_TYPE_WRITER_END, "how", Shown::As::kWord, writer_end_text},
    {ARCTRACE_TYPE_ENABLED, "gate", Shown::As::kWord, gate_text},
    {ARCTRACE_TYPE_SESSION, "what", Shown::As::kWord, session_event_text},
    {ARCTRACE_TYPE_CHILD_STATUS, "status", Shown::As::kWord, child_status_text},
    {ARCTRACE_TYPE_CODE_FILE, "kind", Shown::As::kWord, code_file_kind_text},
    {ARCTRACE_TYPE_WAKING, "context", Shown::As::kWord, context_text},
    {ARCTRACE_TYPE_BLOCK_IO, "device", Shown::As::kWord, device_text},
    {ARCTRACE_TYPE_BLOCK_IO, "operation", Shown::As::kWord, operation_text},
    {ARCTRACE_TYPE_BLOCK_IO_END, "device", Shown::As::kWord, device_text},
    {ARCTRACE_TYPE_BLOCK_IO_END, "operation", Shown::As::kWord, operation_text},
    {ARCTRACE_TYPE_INTERRUPT, "kind", Shown::As::kWord, interrupt_kind_text},
    {ARCTRACE_TYPE_PROCESS, "arguments", Shown::As::kArguments},
    {ARCTRACE_TYPE_SYSTEM, "arguments", Shown::As::kArguments},
    {ARCTRACE_TYPE_ENABLED, "filter", Shown::As::kArguments},
};

const Shown* find_shown(uint16_t type, std::string_view field) {
  const auto* found = std::find_if(
      std::begin(kShown), std::end(kShown),
      [&](const Shown& shown) { return shown.type == type && shown.field == field; });
  return found == std::end(kShown) ? nullptr : found;
}

bool is_size_of_text(const BodyLayout& layout, const BodyField& field) {
  const auto texts = layout.texts();
  return std::any_of(texts.begin(), texts.end(), [&](const BodyText& text) {
    return text.size_offset == field.offset;
  });
}

void put_number(const BodyField& field, std::span<const std::byte> bytes,
                FieldSink& out) {
  switch (field.type) {
    case BodyField::Type::kS32:
      return out.signed_number(field.name, load_part_untrusted<int32_t>(bytes));
    case BodyField::Type::kS64:
      return out.signed_number(field.name, load_part_untrusted<int64_t>(bytes));
    case BodyField::Type::kU64:
      return out.number(field.name, load_part_untrusted<uint64_t>(bytes));
    case BodyField::Type::kChar: {
      const std::string_view text = as_text(bytes.first(field.count));
      return out.text(field.name, text.substr(0, text.find('\0')));
    }
    default:
      return out.number(field.name, load_part_untrusted<uint32_t>(bytes));
  }
}

void put_field(uint16_t type, const BodyField& field, std::span<const std::byte> bytes,
               FieldSink& out) {
  const Shown* shown = find_shown(type, field.name);
  if (shown == nullptr) return put_number(field, bytes, out);
  switch (shown->as) {
    case Shown::As::kHex:
      return out.hex(field.name, load_part_untrusted<uint64_t>(bytes));
    case Shown::As::kWord:
      return out.text(field.name, shown->word(load_part_untrusted<uint32_t>(bytes)));
    default:
      return;
  }
}

// Puts a list of arguments, each ended by a zero byte.
void put_arguments(std::string_view name, std::string_view joined, FieldSink& out) {
  out.begin_list(name);
  while (!joined.empty()) {
    const size_t end = std::min(joined.find('\0'), joined.size());
    out.text("", joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  out.end();
}

void put_body(uint16_t type, const BodyLayout& layout, std::span<const std::byte> body,
              FieldSink& out) {
  for (const BodyField& field : layout.fields()) {
    if (field.name == "reserved" || is_size_of_text(layout, field)) continue;
    put_field(type, field, body.subspan(field.offset), out);
  }
  BodyReader rest(body.subspan(layout.size()));
  for (const BodyText& text : layout.texts()) {
    const std::string_view value =
        rest.text(load_part_untrusted<uint32_t>(body.subspan(text.size_offset)));
    if (find_shown(type, text.name) != nullptr) {
      put_arguments(text.name, value, out);
    } else {
      out.text(text.name, value);
    }
  }
}

// ---- Types that are shown in a way of their own
// ----------------------------------------

void put_module(BodyReader reader, FieldSink& out) {
  const auto module = reader.read<arctrace_module_body>();
  out.number("process", module.process);
  out.hex("start", module.start);
  out.hex("end", module.end);
  out.hex("bias", module.bias);
  const std::string_view build_id = reader.text(module.build_id_size);
  out.text("path", reader.text(module.path_size));
  out.text("build_id", absl::BytesToHexString({build_id.data(), build_id.size()}));
  if ((module.flags & ARCTRACE_MODULE_MAIN) != 0) out.boolean("main", true);
  if ((module.flags & ARCTRACE_MODULE_VDSO) != 0) out.boolean("vdso", true);
}

void put_layout(BodyReader reader, FieldSink& out) {
  const auto layout = reader.read<arctrace_event_layout_body>();
  out.number("process", layout.process);
  out.number("id", layout.id);
  out.number("level", layout.level);
  out.text("name", reader.text(layout.name_size));
  out.begin_list("fields");
  for (uint32_t i = 0; i < layout.field_count && reader.ok(); ++i) {
    const auto field = reader.read<arctrace_layout_field>();
    out.text("", absl::StrCat(std::string(reader.text(field.name_size)), ":",
                              field_type_text(field.type)));
  }
  out.end();
}

void put_totals(const Record& record, FieldSink& out) {
  BodyReader reader(record.body), whole = reader;
  const auto totals = reader.read<arctrace_totals_body>();
  out.number("written", totals.written);
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    if (totals.lost[cause] == 0) continue;
    out.number(loss_cause_text(cause), totals.lost[cause]);
  }
  if (record.thread == kNoIndex) {
    const uint64_t filtered_out = read_filtered_out(whole);
    if (filtered_out != 0) out.number("filtered_out", filtered_out);
    return;
  }
  const arctrace_totals_owner owner = read_totals_owner(whole);
  if (owner.process == 0) return;
  out.number("process", owner.process);
  out.number("owner_pid", owner.pid);
  out.number("owner_tid", owner.tid);
}

void put_files(BodyReader reader, FieldSink& out) {
  const auto files = reader.read<arctrace_files_body>();
  out.text("what", files_event_text(files.what));
  out.number("number", files.number);
  out.number("begin_ticks", files.begin_ticks);
  out.number("records", files.records);
  out.number("kernel", files.kernel);
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    if (files.lost[cause] != 0) out.number(loss_cause_text(cause), files.lost[cause]);
  }
  if ((files.flags & ARCTRACE_FILES_RESUMED) != 0) out.boolean("resumed", true);
  if (files.removed_files == 0) return;
  out.number("removed_files", files.removed_files);
  out.number("removed_records", files.removed_records);
  out.number("removed_kernel", files.removed_kernel);
  out.number("removed_ticks", files.removed_ticks);
}

void put_switch(BodyReader reader, FieldSink& out) {
  const auto body = reader.read<arctrace_switch_body>();
  out.number("cpu", body.cpu);
  out.number("tgid", body.tgid);
  out.text("state", state_text(body.prev_state));
  if (body.next_tid == ARCTRACE_SWITCH_UNKNOWN) return;
  out.number("next_tid", body.next_tid);
  out.number("next_tgid", body.next_tgid);
}

void put_patches(BodyReader reader, FieldSink& out) {
  const auto patches = reader.read<arctrace_patches_body>();
  out.begin_list("functions");
  for (uint32_t i = 0; i < patches.listed && reader.ok(); ++i) {
    out.text("", absl::StrCat("0x", absl::Hex(reader.read<uint64_t>())));
  }
  out.end();
}

void put_hook_costs(BodyReader reader, FieldSink& out) {
  const auto costs = reader.read<arctrace_hook_costs_body>();
  for (uint32_t i = 0; i < costs.count; ++i) {
    const auto cost = reader.read<arctrace_hook_cost>();
    if (!reader.ok()) return;
    const std::string kind = hook_kind_text(cost.kind);
    out.number(absl::StrCat(kind, "_inside_ps"), cost.inside_ps);
    out.number(absl::StrCat(kind, "_outside_ps"), cost.outside_ps);
  }
}

// Puts what stands in the place of a phase.
void put_of_phase(BodyReader reader, FieldSink& out) {
  const uint32_t phase = reader.read<arctrace_phase_body>().phase;
  if (phase == ARCTRACE_LIFE_TRACED) {
    const auto began_ticks = reader.read<uint64_t>();
    if (reader.ok()) out.number("began_ticks", began_ticks);
    return;
  }
  if (phase != ARCTRACE_LIFE_HELPER && phase != ARCTRACE_LIFE_THREAD_END) return;
  const auto number = reader.read<uint32_t>();
  if (!reader.ok()) return;
  out.number(phase == ARCTRACE_LIFE_HELPER ? "child_pid" : "writer", number);
}

void put_process_fork(BodyReader reader, FieldSink& out) {
  const auto process = reader.read<arctrace_process_body>();
  reader.text(process.executable_size);
  reader.text(process.arguments_size);
  const arctrace_process_fork fork = read_process_fork(reader);
  if (fork.forker != 0) out.number("forker", fork.forker);
  if (fork.forked_ticks != 0) out.number("forked_ticks", fork.forked_ticks);
}

}  // namespace

bool describe_fields(const Record& record, FieldSink& out) {
  const BodyLayout* layout = body_layout(record.type);
  if (layout == nullptr || record.type < ARCTRACE_TYPE_PROCESS) return false;
  const BodyReader reader(record.body);
  switch (record.type) {
    case ARCTRACE_TYPE_MODULE:
      put_module(reader, out);
      break;
    case ARCTRACE_TYPE_EVENT_LAYOUT:
      put_layout(reader, out);
      break;
    case ARCTRACE_TYPE_TOTALS:
      put_totals(record, out);
      break;
    case ARCTRACE_TYPE_FILES:
      put_files(reader, out);
      break;
    case ARCTRACE_TYPE_SWITCH:
      put_switch(reader, out);
      break;
    case ARCTRACE_TYPE_CODE_FILE: {
      put_body(record.type, *layout, record.body, out);
      const auto file = load_part_untrusted<arctrace_code_file_body>(record.body);
      if ((file.flags & ARCTRACE_CODE_FILE_CUT) != 0) out.boolean("cut", true);
      break;
    }
    case ARCTRACE_TYPE_PROCESS:
      put_body(record.type, *layout, record.body, out);
      put_process_fork(reader, out);
      break;
    case ARCTRACE_TYPE_PHASE:
      put_body(record.type, *layout, record.body, out);
      put_of_phase(reader, out);
      break;
    case ARCTRACE_TYPE_SIGNAL: {
      put_body(record.type, *layout, record.body, out);
      const uint64_t instruction = read_signal_place(record.body).instruction;
      if (instruction != 0) out.hex("instruction", instruction);
      break;
    }
    case ARCTRACE_TYPE_PATCHES:
      put_body(record.type, *layout, record.body, out);
      put_patches(reader, out);
      break;
    case ARCTRACE_TYPE_HOOK_COSTS:
      put_hook_costs(reader, out);
      break;
    case ARCTRACE_TYPE_WAKING: {
      put_body(record.type, *layout, record.body, out);
      const uint32_t context =
          load_part_untrusted<arctrace_waking_body>(record.body).context;
      if (const uint32_t vector = ARCTRACE_WAKING_VECTOR(context); vector != 0) {
        out.text("softirq", softirq_text(vector - 1));
      }
      break;
    }
    case ARCTRACE_TYPE_INTERRUPT: {
      put_body(record.type, *layout, record.body, out);
      const auto body = load_part_untrusted<arctrace_interrupt_body>(record.body);
      out.text("interrupt", interrupt_text(body.kind, body.number));
      break;
    }
    default:
      put_body(record.type, *layout, record.body, out);
  }
  return true;
}

}  // namespace arctrace::reader
