#include "reader/streams/record_describer.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <string>

#include "reader/trace/call_args.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {
namespace {

std::string hex_bytes(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes);
  return absl::BytesToHexString({text.data(), text.size()});
}

void put_value(const FieldValue& field, FieldSink& out) {
  const std::string& name = field.field->name;
  if (const auto* number = std::get_if<int64_t>(&field.value)) {
    out.signed_number(name, *number);
  } else if (const auto* bits = std::get_if<uint64_t>(&field.value)) {
    if (field.field->type == ARCTRACE_FIELD_X64) {
      out.hex(name, *bits);
    } else {
      out.number(name, *bits);
    }
  } else if (std::holds_alternative<double>(field.value)) {
    out.real(name, real_text(field));
  } else if (const auto* truth = std::get_if<bool>(&field.value)) {
    out.boolean(name, *truth);
  } else {
    out.text(name, std::get<std::string_view>(field.value));
  }
}

}  // namespace

void RecordDescriber::describe(const Record& record, const StackEffect& effect,
                               FieldSink& out) {
  BodyReader reader(record.body);
  switch (record.type) {
    case ARCTRACE_TYPE_ENTER:
    case ARCTRACE_TYPE_EXIT:
    case ARCTRACE_TYPE_EXIT_NAMED:
    case ARCTRACE_TYPE_UNWIND:
      return describe_call(record, effect, out);
    case ARCTRACE_TYPE_STACK:
    case ARCTRACE_TYPE_COROUTINE:
      return describe_stack(record, effect, out);
    case ARCTRACE_TYPE_INHERITED:
      out.number("process", reader.read<uint32_t>());
      return put_frames(record, reader, out);
    case ARCTRACE_TYPE_LOST:
      return describe_lost(record, out);
    case ARCTRACE_TYPE_VFORK_BEGIN:
      return;
    case ARCTRACE_TYPE_VFORK_END:
      out.number("child_pid", reader.read<arctrace_vfork_end_body>().child_pid);
      return put_left(effect, out);
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      if (effect.args_of.has_value()) put_title(*effect.args_of, out);
      return record.type == ARCTRACE_TYPE_ARGUMENTS
                 ? out.args(record.body, arg_names(record))
                 : out.retval(record.body, arg_names(record));
    case ARCTRACE_TYPE_EVENT:
      return describe_event(record, out);
    case ARCTRACE_TYPE_INSTANT:
      return out.title("name", name(record, reader.read<arctrace_instant_body>().name));
    case ARCTRACE_TYPE_COUNTER: {
      const auto counter = reader.read<arctrace_counter_body>();
      out.title("name", name(record, counter.name));
      return out.signed_number("value", counter.value);
    }
    case ARCTRACE_TYPE_TEXT:
    case ARCTRACE_TYPE_MARK: {
      const uint32_t size = reader.read<arctrace_text_body>().text_size;
      return out.text("text", reader.text(size));
    }
    default:
      if (!describe_fields(record, out)) out.text("body", hex_bytes(record.body));
  }
}

void RecordDescriber::describe_call(const Record& record, const StackEffect& effect,
                                    FieldSink& out) {
  if (record.type == ARCTRACE_TYPE_UNWIND) {
    out.number("count", load_part_untrusted<arctrace_unwind_body>(record.body).count);
    put_left(effect, out);
  } else if (record.type != ARCTRACE_TYPE_EXIT) {
    put_function(record, load_part_untrusted<arctrace_frame_body>(record.body).key, out);
    if (record.type == ARCTRACE_TYPE_ENTER) put_locks(record, out);
    // The frame itself is the last one that such an exit left.
    if (effect.left.size() > 1) put_left(effect, out);
  } else if (!effect.left.empty()) {
    put_title(effect.left.front(), out);
  }
  if (effect.orphan) out.boolean("orphan", true);
}

void RecordDescriber::put_function(const Record& record, uint64_t key, FieldSink& out) {
  const FunctionId id = resolver_.resolve(process_of(record), key, record.time_ns);
  put_title(id, out);
  if (options_.addresses) out.hex("key", key);
}

void RecordDescriber::put_title(FunctionId id, FieldSink& out) {
  const Function& function = resolver_.functions()[id];
  out.title("function", function.name);
  if (options_.modules && !function.module.empty()) out.text("module", function.module);
}

void RecordDescriber::put_locks(const Record& record, FieldSink& out) {
  BodyReader words(lock_words(record.body));
  if (words.rest().empty()) return;
  out.begin_list("locks");
  while (!words.rest().empty()) {
    out.hex("", words.read<arctrace_lock_word>().address);
  }
  out.end();
}

void RecordDescriber::put_left(const StackEffect& effect, FieldSink& out) {
  out.begin_list("left");
  for (const FunctionId id : effect.left) {
    out.text("", resolver_.functions()[id].name);
  }
  out.end();
}

void RecordDescriber::describe_stack(const Record& record, const StackEffect& effect,
                                     FieldSink& out) {
  BodyReader reader(record.body);
  if (record.type == ARCTRACE_TYPE_COROUTINE) {
    out.number("coroutine", reader.read<uint32_t>());
  }
  put_frames(record, reader, out);
  if (effect.resync) out.boolean("resync", true);
}

// Puts depth, count and keys, and the number of a coroutine that may follow these.
void RecordDescriber::put_frames(const Record& record, BodyReader reader,
                                 FieldSink& out) {
  const auto body = reader.read<arctrace_stack_body>();
  const BodyReader keys = reader;
  out.number("depth", body.depth);
  out.begin_list("frames");
  for (uint32_t i = 0; i < body.count; ++i) {
    const FunctionId id =
        resolver_.resolve(process_of(record), reader.read<uint64_t>(), record.time_ns);
    out.text("", resolver_.functions()[id].name);
  }
  out.end();
  if (record.type == ARCTRACE_TYPE_STACK && reader.rest().size() >= sizeof(uint32_t)) {
    out.number("coroutine", reader.read<uint32_t>());
    // What the recorder says of a thread that it saw wait to the end.
    if (reader.rest().size() >= sizeof(uint32_t)) {
      out.number("waits", reader.read<uint32_t>());
    }
  }
  if (options_.addresses) {
    reader = keys;
    out.begin_list("keys");
    for (uint32_t i = 0; i < body.count; ++i) out.hex("", reader.read<uint64_t>());
    out.end();
  }
}

void RecordDescriber::describe_lost(const Record& record, FieldSink& out) {
  const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
  out.number("count", lost.count);
  out.text("cause", loss_cause_text(lost.cause));
  if (lost.since_ticks != 0) {
    out.signed_number("since_ns", trace_.clock().to_ns(lost.since_ticks));
  }
  if ((lost.flags & ARCTRACE_LOST_INHERITED) != 0) out.boolean("inherited", true);
  if ((lost.flags & ARCTRACE_LOST_RESIDUAL) != 0) out.boolean("residual", true);
  if ((lost.flags & ARCTRACE_LOST_SESSION) != 0) out.boolean("session", true);
  if ((lost.flags & ARCTRACE_LOST_CPU) != 0) {
    out.number("cpu", lost.flags >> ARCTRACE_LOST_CPU_SHIFT);
  }
}

void RecordDescriber::describe_event(const Record& record, FieldSink& out) {
  BodyReader reader(record.body);
  const uint32_t id = reader.read<arctrace_event_body>().event;
  const std::span<const std::byte> payload = reader.rest();
  const EventLayout* layout = trace_.definitions().layout(process_of(record), id);
  if (layout == nullptr) {
    out.title("event", absl::StrCat("event#", id));
    return out.text("payload", hex_bytes(payload));
  }
  out.title("event", layout->name);
  const EventValues values = decode_event_untrusted(*layout, payload);
  out.begin_object("fields");
  for (const FieldValue& value : values.fields) put_value(value, out);
  out.end();
  if (!values.fits) out.text("payload", hex_bytes(payload));
}

std::string_view RecordDescriber::arg_names(const Record& record) const {
  const std::optional<uint32_t> id = find_arg_names(record.body);
  if (!id) return {};
  return trace_.definitions().name(process_of(record), *id).value_or("");
}

std::string RecordDescriber::name(const Record& record, uint32_t id) const {
  const auto name = trace_.definitions().name(process_of(record), id);
  return name.has_value() ? std::string(*name) : absl::StrCat("name#", id);
}

ProcessIndex RecordDescriber::process_of(const Record& record) const {
  const Thread* thread = trace_.definitions().thread(record.thread);
  return thread == nullptr ? kNoIndex : thread->process;
}

}  // namespace arctrace::reader
