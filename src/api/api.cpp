// Implements the public C API (arctrace.h) with the writer, and the shim's interface by
// which a running process changes from a session that is over to another one.
#include <arctrace/arctrace.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/calls/call_filter.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/gate.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/block_state.hpp"
#include "src/stack/call_edges.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/in_place_records.hpp"
#include "src/writer/process_records.hpp"
#include "src/writer/record.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {
namespace {

constexpr uint32_t kTextMax = 1024;
constexpr uint32_t kFieldsMax = 64;

uint32_t last_name_id;
uint32_t last_event_id;

// Writes a TEXT or MARK record.
void record_text(uint16_t type, const char* text, uint32_t length) {
  const WriterCall writer_call;
  if (writer_call.refuses_record()) return;
  const uint32_t padded = padded_size(length);
  constexpr uint32_t kTextSize = sizeof(arctrace_text_body);
  write_record(writer_call, type, kTextSize + padded, session_ticks(),
               [&](std::byte* body) {
                 std::byte* to = body + kTextSize;
                 // The padding is in the last word.
                 if (padded != 0) word_at(to + padded - sizeof(uint32_t)) = 0;
                 part_at<arctrace_text_body>(body).text_size = length;
                 copy_bytes(to, text, length);
               });
}

// Null: there is no memory.
Definition* define_name(const char* name, uint32_t& id) {
  id = IpcAtomics::fetch_add_relaxed(last_name_id, uint32_t{1}) + 1;
  const auto n = static_cast<uint32_t>(text_length(name, kNameMax));
  const arctrace_string_body body{.process = 0, .id = id, .text_size = n};
  const BodyPart parts[] = {{&body, sizeof body}, {name, n}};
  constexpr uint32_t kCutAt = offsetof(arctrace_string_body, text_size);
  Definition* definition = add_definition(ARCTRACE_TYPE_STRING, parts, 2, kCutAt, 0);
  if (definition != nullptr) emit_from_this_thread();
  return definition;
}

void begin_records() {
  scan_modules(session_ticks(), true);
  attach_this_thread();
}

bool (*before_first_record)();

// One thread makes the identity of the process. Records of threads that begin at once are
// lost until it is there.
bool prepare_records() {
  scan_modules(session_ticks(), true);
  const bool is_filtered = before_first_record();
  attach_this_thread();
  return is_filtered;
}

}  // namespace
}  // namespace arctrace::writer

using namespace arctrace;
using namespace arctrace::writer;  // the C functions below are the namespace's face

int arctrace_attach(const char* path) {
  if (path == nullptr) path = secure_getenv("ARCTRACE_SESSION");
  if (path == nullptr || path[0] == '\0') return -ENOENT;
  if (const int error = join_session(path); error != 0) return error;
  begin_records();
  return 0;
}

void arctrace_detach(void) {
  arctrace_flush();
  close_gate();
}

void arctrace_flush(void) {
  const WriterCall writer_call;
  ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->attached && !writer_call.nested() &&
      !writer_call.refused()) {
    close_block(*state);
  }
}

uint32_t arctrace_define_name(const char* name) {
  uint32_t id = 0;
  Definition* definition = define_name(name, id);
  if (definition == nullptr) return 0;
  judge_name(*definition);
  return id;
}

uint32_t arctrace_shim_define_name(const char* name) {
  uint32_t id = 0;
  return define_name(name, id) == nullptr ? 0 : id;
}

uint32_t arctrace_define_event(const char* name, uint32_t level,
                               const struct arctrace_field* fields, size_t field_count) {
  if (field_count > kFieldsMax || level > 7) return 0;
  const uint32_t id = IpcAtomics::fetch_add_relaxed(last_event_id, uint32_t{1}) + 1;
  const auto count = static_cast<uint32_t>(field_count);
  const auto n = static_cast<uint32_t>(text_length(name, kNameMax));
  const arctrace_event_layout_body body{
      .process = 0, .id = id, .level = level, .field_count = count, .name_size = n};
  arctrace_layout_field heads[kFieldsMax];
  BodyPart parts[2 + 2 * kFieldsMax] = {{&body, sizeof body}, {name, n}};
  uint32_t used = 2;
  // The offset of the last string's size.
  uint32_t cut_at = offsetof(arctrace_event_layout_body, name_size);
  uint32_t at = static_cast<uint32_t>(sizeof body) + padded_size(n);
  for (uint32_t i = 0; i < count; ++i) {
    if (fields[i].type < ARCTRACE_FIELD_U8 || fields[i].type > ARCTRACE_FIELD_STRING) {
      return 0;
    }
    const auto size = static_cast<uint32_t>(text_length(fields[i].name, kNameMax));
    heads[i] = {.type = fields[i].type, .name_size = size};
    parts[used++] = {&heads[i], sizeof heads[i]};
    parts[used++] = {fields[i].name, size};
    cut_at = at + static_cast<uint32_t>(offsetof(arctrace_layout_field, name_size));
    at += static_cast<uint32_t>(sizeof heads[i]) + padded_size(size);
  }
  if (add_definition(ARCTRACE_TYPE_EVENT_LAYOUT, parts, used, cut_at, 0) == nullptr) {
    return 0;
  }
  emit_from_this_thread();
  return id;
}

void arctrace_discard(void* payload) { end_in_place(payload, false); }

void arctrace_text(const char* format, ...) {
  if (!is_recorded(ARCTRACE_GATE_MARKS)) return;
  const int error = errno;
  char text[kTextMax];
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  errno = error;
  if (n < 0) return;
  const auto length = static_cast<uint32_t>(n);
  record_text(ARCTRACE_TYPE_TEXT, text, length < kTextMax ? length : kTextMax - 1);
}

void arctrace_mark(const char* text) {
  if (!is_recorded(ARCTRACE_GATE_MARKS)) return;
  record_text(ARCTRACE_TYPE_MARK, text,
              static_cast<uint32_t>(text_length(text, kTextMax)));
}

void arctrace_thread_name(const char* name) { record_own_name(name); }

int arctrace_snapshot(uint32_t after_ms) {
  if (!session.joined) return -ENOENT;
  arctrace_control& control = session.view.control();
  if (session.view.geometry().mode != ARCTRACE_MODE_OVERWRITE ||
      !is_live(IpcAtomics::load_acquire(control.collector_lock))) {
    return -ESRCH;
  }
  IpcAtomics::store_relaxed(control.snapshot_after_ms, after_ms);
  // N1 acq_rel, matches N2 (the flight recorder), which sees snapshot_after_ms, too.
  IpcAtomics::fetch_add_acq_rel(control.snapshots_asked, uint32_t{1});
  if (may_call_kernel()) wake_collector(control);
  return 0;
}

uint64_t arctrace_lost(uint64_t lost[ARCTRACE_LOST_CAUSES]) {
  uint64_t sum = 0;
  const ThreadState* state = thread_local_state.state;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    uint64_t count = 0;
    if (session.joined) {
      count = IpcAtomics::load_relaxed(session.view.control().lost[cause]);
      if (state != nullptr && state->attached && cause != ARCTRACE_LOST_NO_SLOT) {
        count =
            IpcAtomics::load_relaxed(session.view.slot(state->slot.index).lost[cause]) -
            state->loss.at_start[cause];
      }
    }
    if (lost != nullptr) lost[cause] = count;
    sum += count;
  }
  return sum;
}

// A program started by `arctrace record` finds its session in the environment. Others
// have no clock read, which the kernel may forbid them (PR_SET_TSC).
__attribute__((constructor(101))) static void attach_at_load(void) {
  if (secure_getenv("ARCTRACE_SESSION") == nullptr) return;
  const ClockTimes began = times_now();
  if (arctrace_attach(nullptr) == 0 && *arctrace_gate != 0)
    record_start(TracerStart::kFirst, began);
}

// The shim's interface for the recorder's second `record --pid`: a running process leaves
// a session that is over, and joins another one.

int arctrace_shim_join(const char* path, bool (*before_records)(void)) {
  before_first_record = before_records;
  return join_session(path, prepare_records);
}

int arctrace_shim_join_handed(int fd, bool (*before_records)(void)) {
  before_first_record = before_records;
  const bool is_first = before_records == nullptr;
  const int error = join_handed_session(fd, is_first ? nullptr : prepare_records);
  if (error == 0 && is_first) begin_records();
  return error;
}

int arctrace_shim_end_session(void) {
  if (!session.joined) return 0;
  if (session_state() == ARCTRACE_SHIM_GOES_ON) return -EBUSY;
  end_session();
  return 0;
}

int arctrace_shim_forget_session(void) {
  if (session.joined) return -EBUSY;
  if (is_any_thread_writing()) return -EAGAIN;
  if (!release_session()) return -ENOMEM;
  forget_process_identity();
  renew_thread_states();
  forget_verdicts();
  reset_call_filter();
  retire_filter_text();
  forget_call_edges();
  return 0;
}
