// The public C ABI (arctrace.h) on top of the writer.
#include <arctrace/arctrace.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/call_filter.hpp"
#include "src/call_stack.hpp"
#include "src/confinement.hpp"
#include "src/definitions.hpp"
#include "src/held_records.hpp"
#include "src/left_frames.hpp"
#include "src/live_choice.hpp"
#include "src/loss.hpp"
#include "src/memory.hpp"
#include "src/modules.hpp"
#include "src/process_facts.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/readable_memory.hpp"
#include "src/robust_lock.hpp"
#include "src/shim_interface.h"
#include "src/untraceable.hpp"
#include "src/wake_word.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kTextMax = 1024;
constexpr uint32_t kNameMax = 1024;
constexpr uint32_t kFieldsMax = 64;

// Of the joined session. A copy: the program may write over its environment.
char session_path[4096];

uint32_t last_name_id;
uint32_t last_event_id;

// Definitions reach the buffer at once if this thread writes there already; else with
// its first record.
void emit_from_this_thread() {
  if (!session.joined) return;
  const WriteScope scope;
  ThreadState* state = scope.local().state;
  if (scope.refused() || state == nullptr || !state->attached) return;
  if (ProcessState* process = current_process(session_ticks()); process != nullptr) {
    emit_definitions(scope, *state, *process);
  }
}

// TEXT and MARK: u32 n, then n bytes.
void record_text(uint16_t type, const char* text, uint32_t length) {
  const WriteScope scope;
  if (scope.refuses_record()) return;
  const uint32_t padded = (length + 3) & ~3u;
  write_record(scope, type, 4 + padded, session_ticks(), [&](std::byte* body) {
    if (padded != 0) store_u32(body + padded, 0);  // the padding is in the last word
    store_u32(body, length);
    copy_bytes(body + 4, text, length);
  });
}

// For the recorder, which finds the file of who lives long by itself.
void say_jit_dump(ScopeKind scope, ThreadState& state, ProcessState& process,
                  uint64_t ticks) {
  // Not on the stack, which may be a signal handler's small one; for the first who ends
  // the process only.
  static char path[8192];
  static uint32_t claim;
  uint32_t unclaimed = 0;
  if (!may_call_kernel() ||
      !IpcAtomics::compare_exchange_acq_rel(claim, unclaimed, uint32_t{1})) {
    return;
  }
  const uint32_t n = find_jit_dump(process.pid, path, sizeof path);
  const uint32_t padded = (n + 3) & ~3u;
  if (n == 0) return;
  const Reservation record =
      reserve_definition(scope, state, process, ARCTRACE_TYPE_JITDUMP, 8 + padded, ticks);
  if (record.word0 == nullptr) return;
  store_u32(record.body, process.id);
  store_u32(record.body + 4, n);
  store_u32(record.body + 4 + padded, 0);  // the padding is in the last word
  copy_bytes(record.body + 8, path, n);
  commit(scope, record);
}

// Whether a program that this process becomes may: by its real user, and without rights
// that exec takes away.
bool may_access(int folder, const char* path, int mode) {
  return raw_syscall(SYS_faccessat, folder, sys::pointer_argument(path), mode) == 0;
}

void say_untraced(const char* path, uint32_t why) {
  const WriteScope scope;
  if (scope.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(scope, ticks);
  ProcessState* process = current_process(ticks);
  if (state == nullptr || process == nullptr) return;
  emit_definitions(scope, *state, *process);
  const auto n = static_cast<uint32_t>(text_length(path, kTextMax));
  const uint32_t padded = (n + 3) & ~3u;
  const Reservation record = reserve_definition(
      scope, *state, *process, ARCTRACE_TYPE_UNTRACED, 12 + padded, ticks);
  if (record.word0 == nullptr) return;
  store_u32(record.body, process->id);
  store_u32(record.body + 4, why);
  store_u32(record.body + 8 + padded, 0);  // the padding is in the last word
  store_u32(record.body + 8, n);
  copy_bytes(record.body + 12, path, n);
  commit(scope, record);
}

// What a confined process executes is confined as well, and would have to join to be
// traced. Where no file may be looked at, its path is taken as it is given.
uint32_t executes_confined(const arctrace_shim_program& named) {
  constexpr uint32_t kWhy = ARCTRACE_UNTRACED_CONFINED;
  ReadableMemory readable;
  if (!session.joined || *arctrace_gate == 0 || named.path == nullptr ||
      readable.text_length(named.path, kTextMax) < 0) {
    return kWhy;
  }
  if (!may_use_kernel(kFileLookUse)) {
    say_untraced(named.path, kWhy);
    return kWhy;
  }
  const FoundProgram program(named);
  if (program.path() != nullptr && may_access(program.folder(), program.path(), X_OK)) {
    say_untraced(program.path(), kWhy);
  }
  return kWhy;
}

bool is_open(uint32_t bits) { return (*arctrace_gate & bits) != 0; }

}  // namespace
}  // namespace arctrace

using namespace arctrace;  // the C functions below are the namespace's face

int arctrace_attach(const char* path) {
  if (path == nullptr) path = secure_getenv("ARCTRACE_SESSION");
  if (path == nullptr || path[0] == '\0') return -ENOENT;
  const size_t length = text_length(path, sizeof session_path);
  if (length == sizeof session_path) return -ENAMETOOLONG;
  if (const int error = join_session(path); error != 0) return error;
  copy_bytes(session_path, path, length + 1);
  scan_modules(session_ticks(), true);
  attach_this_thread();
  return 0;
}

void arctrace_detach(void) {
  static const uint32_t kClosed = 0;
  arctrace_flush();
  arctrace_gate = &kClosed;
}

void arctrace_flush(void) {
  const WriteScope scope;
  ThreadState* state = scope.local().state;
  if (state != nullptr && state->attached && !scope.nested() && !scope.refused()) {
    close_block(*state);
  }
}

uint32_t arctrace_define_name(const char* name) {
  const uint32_t id = IpcAtomics::fetch_add_relaxed(last_name_id, uint32_t{1}) + 1;
  const auto n = static_cast<uint32_t>(text_length(name, kNameMax));
  const uint32_t head[3] = {0, id, n};
  const BodyPart parts[] = {{head, sizeof head}, {name, n}};
  if (add_definition(ARCTRACE_TYPE_STRING, parts, 2, 8, 0) == nullptr) return 0;
  emit_from_this_thread();
  return id;
}

uint32_t arctrace_define_event(const char* name, uint32_t level,
                               const struct arctrace_field* fields, size_t field_count) {
  if (field_count > kFieldsMax || level > 7) return 0;
  const uint32_t id = IpcAtomics::fetch_add_relaxed(last_event_id, uint32_t{1}) + 1;
  const auto count = static_cast<uint32_t>(field_count);
  const auto n = static_cast<uint32_t>(text_length(name, kNameMax));
  const uint32_t head[5] = {0, id, level, count, n};
  uint32_t field_heads[kFieldsMax][2];
  BodyPart parts[2 + 2 * kFieldsMax] = {{head, sizeof head}, {name, n}};
  uint32_t used = 2;
  uint32_t cut_at = 16;  // of the last string's length
  const auto padded = [](uint32_t size) { return (size + 3) & ~3u; };
  uint32_t at = static_cast<uint32_t>(sizeof head) + padded(n);
  for (uint32_t i = 0; i < count; ++i) {
    if (fields[i].type < ARCTRACE_FIELD_U8 || fields[i].type > ARCTRACE_FIELD_STRING) {
      return 0;
    }
    field_heads[i][0] = fields[i].type;
    field_heads[i][1] = static_cast<uint32_t>(text_length(fields[i].name, kNameMax));
    parts[used++] = {field_heads[i], 8};
    parts[used++] = {fields[i].name, field_heads[i][1]};
    cut_at = at + 4;
    at += 8 + padded(field_heads[i][1]);
  }
  if (add_definition(ARCTRACE_TYPE_EVENT_LAYOUT, parts, used, cut_at, 0) == nullptr) {
    return 0;
  }
  emit_from_this_thread();
  return id;
}

// Flattened, as all that begins the path of an entry or exit (docs/decisions.md).
__attribute__((flatten)) void arctrace_enter(uint64_t frame_key) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_enter(frame_key, uintptr_t{0});
}

__attribute__((flatten)) void arctrace_enter_at(uint64_t frame_key, uintptr_t location) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_enter(frame_key, location);
}

__attribute__((flatten)) void arctrace_exit(uint64_t frame_key) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_exit(frame_key, 0, stack_pointer());
}

void arctrace_write(uint32_t event, const void* payload, size_t size) {
  if (!is_open(ARCTRACE_GATE_EVENTS)) return;
  const WriteScope scope;
  if (scope.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  if (__builtin_expect(size > ARCTRACE_PAYLOAD_MAX, 0)) {
    reserve_impossible(scope, ticks);
    return;
  }
  const auto length = static_cast<uint32_t>(size);
  const uint32_t padded = (length + 3) & ~3u;
  write_record(scope, ARCTRACE_TYPE_EVENT, 4 + padded, ticks, [&](std::byte* body) {
    if (padded != length) store_u32(body + padded, 0);
    store_u32(body, event);
    copy_bytes(body + 4, payload, length);
  });
}

void* arctrace_reserve(uint32_t event, size_t size) {
  if (!is_open(ARCTRACE_GATE_EVENTS)) return nullptr;
  return hold_record(event, size);
}

void arctrace_commit(void* payload) { settle_record(payload, true); }
void arctrace_discard(void* payload) { settle_record(payload, false); }

void arctrace_instant(uint32_t name_id) {
  if (!is_open(ARCTRACE_GATE_MARKS)) return;
  const WriteScope scope;
  if (scope.refuses_record()) return;
  write_record(scope, ARCTRACE_TYPE_INSTANT, 4, session_ticks(),
               [name_id](std::byte* body) { store_u32(body, name_id); });
}

void arctrace_counter(uint32_t name_id, int64_t value) {
  if (!is_open(ARCTRACE_GATE_MARKS)) return;
  const WriteScope scope;
  if (scope.refuses_record()) return;
  write_record(scope, ARCTRACE_TYPE_COUNTER, 12, session_ticks(), [=](std::byte* body) {
    store_u32(body, name_id);
    store_u64(body + 4, static_cast<uint64_t>(value));
  });
}

void arctrace_text(const char* format, ...) {
  if (!is_open(ARCTRACE_GATE_MARKS)) return;
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
  if (!is_open(ARCTRACE_GATE_MARKS)) return;
  record_text(ARCTRACE_TYPE_MARK, text,
              static_cast<uint32_t>(text_length(text, kTextMax)));
}

void arctrace_thread_name(const char* name) {
  if (!session.joined) return;
  const WriteScope scope;
  if (scope.nested() || scope.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(scope, ticks);
  ProcessState* process = current_process(ticks);
  if (state == nullptr || process == nullptr) return;
  const size_t n = name == nullptr ? 0 : text_length(name, sizeof state->name - 1);
  copy_bytes(state->name, name, n);
  state->name[n] = '\0';
  state->thread_defined = false;
  emit_definitions(scope, *state, *process);
}

int arctrace_snapshot(uint32_t after_ms) {
  if (!session.joined) return -ENOENT;
  arctrace_control& control = session.view.control();
  if (session.view.geometry().mode != ARCTRACE_MODE_OVERWRITE ||
      !is_live(IpcAtomics::load_acquire(control.collector_lock))) {
    return -ESRCH;
  }
  IpcAtomics::store_relaxed(control.snapshot_after_ms, after_ms);
  // N1 acq_rel, matches N2 (the flight recorder): when, too.
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
        count = IpcAtomics::load_relaxed(session.view.slot(state->slot).lost[cause]) -
                state->lost_at_start[cause];
      }
    }
    if (lost != nullptr) lost[cause] = count;
    sum += count;
  }
  return sum;
}

const char* arctrace_shim_session(void) {
  return session.joined ? session_path : nullptr;
}

void arctrace_shim_set_filter(const struct arctrace_shim_filter* filter) {
  if (session.joined) set_call_filter(*filter);
}

const volatile uint32_t* arctrace_shim_choice_round(void) {
  return session.joined ? &choice_area(session.view).round : nullptr;
}

int64_t arctrace_shim_copy_choice(uint64_t* text, uint32_t* round) {
  if (!session.joined) return -1;
  return copy_choice_untrusted(choice_area(session.view), text, *round);
}

void arctrace_shim_choose(uint32_t round, int only_chosen) {
  if (session.joined) choose_live(round, only_chosen != 0);
}

void arctrace_shim_patterns_matched(uint64_t patterns) {
  if (session.joined) {
    IpcAtomics::fetch_or_relaxed(session.view.control().patterns_matched, patterns);
  }
}

int arctrace_shim_claim(void) {
  static uint32_t claimed;
  uint32_t nobody = 0;
  return IpcAtomics::compare_exchange_acq_rel(claimed, nobody, uint32_t{1}) ? 1 : 0;
}

void arctrace_shim_libc_thread(uint32_t tid) { begin_libc_thread(tid); }

void arctrace_shim_thread_start(uintptr_t stack_low, uintptr_t stack_high) {
  thread_local_state.stacks.own = {stack_low, stack_high};
  if (!session.joined) return;
  forget_dead_threads_calls();
  attach_this_thread();
  if (ReturnStack* calls = thread_local_state.calls; calls != nullptr) {
    calls->own = thread_local_state.stacks.own;
  }
}

// In a fork child its state is free for others until this thread claims it again.
void arctrace_shim_before_thread(void) { attach_this_thread(); }

void arctrace_shim_signal_stack(uintptr_t low, uintptr_t high) {
  thread_local_state.stacks.signal = {low, high};
}

void arctrace_shim_set_unwinder(arctrace_shim_unwinder* unwinder) {
  set_unwinder(unwinder);
}

__attribute__((flatten)) void arctrace_shim_enter(uint64_t frame_key,
                                                  const struct arctrace_shim_call* call) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_enter(frame_key, *call);
}

__attribute__((flatten)) int arctrace_shim_exit(uint64_t frame_key,
                                                uintptr_t stack_pointer) {
  if (!is_open(ARCTRACE_GATE_FUNCTIONS)) return 1;
  return record_innermost_exit(frame_key, stack_pointer) ? 1 : 0;
}

void arctrace_shim_exit_at(uint64_t frame_key, uintptr_t location,
                           uintptr_t stack_pointer) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_exit(frame_key, location, stack_pointer);
}

void arctrace_shim_modules_changed(void) {
  if (!session.joined || !may_call_kernel()) return;
  scan_modules(session_ticks(), false);
  emit_from_this_thread();
}

void arctrace_shim_other_thread_name(uint32_t tid, const char* name) {
  if (!session.joined) return;
  const WriteScope scope;
  if (scope.nested() || scope.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(scope, ticks);
  ProcessState* process = current_process(ticks);
  if (state == nullptr || process == nullptr ||
      IpcAtomics::load_acquire(process->defined) == 0) {
    return;
  }
  for (uint32_t i = 0; i < session.view.geometry().slot_count; ++i) {
    arctrace_writer_slot& slot = session.view.slot(i);
    if (IpcAtomics::load_relaxed(slot.tid) != tid ||
        IpcAtomics::load_relaxed(slot.process) != process->id ||
        !is_live(IpcAtomics::load_acquire(slot.lock))) {
      continue;
    }
    const auto n = static_cast<uint32_t>(text_length(name, sizeof state->name - 1));
    const uint32_t padded = (n + 3) & ~3u;
    const Reservation record = reserve_definition(
        scope, *state, *process, ARCTRACE_TYPE_THREAD, 24 + padded, ticks);
    if (record.word0 == nullptr) return;
    store_u32(record.body, IpcAtomics::load_relaxed(slot.writer));
    store_u32(record.body + 4, process->id);
    store_u32(record.body + 8, tid);
    store_u32(record.body + 12, n);
    store_u64(record.body + 16, IpcAtomics::load_relaxed(slot.start_ticks));
    if (padded != 0) store_u32(record.body + 20 + padded, 0);
    copy_bytes(record.body + 24, name, n);
    commit(scope, record);
    return;
  }
}

void arctrace_shim_process_end(uint32_t how, int32_t status) {
  if (!session.joined || *arctrace_gate == 0) return;
  const WriteScope scope;
  if (scope.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(scope, ticks);
  ProcessState* process = current_process(ticks);
  if (state == nullptr || process == nullptr) return;
  if (filter_is_active()) tell_long_calls(scope, *state, ticks);
  emit_definitions(scope, *state, *process);
  if (IpcAtomics::load_acquire(process->defined) == 0) return;  // nobody's end
  say_jit_dump(scope, *state, *process, ticks);
  const Reservation record =
      reserve_definition(scope, *state, *process, ARCTRACE_TYPE_PROCESS_END, 12, ticks);
  if (record.word0 == nullptr) return;
  store_u32(record.body, process->id);
  store_u32(record.body + 4, how);
  store_u32(record.body + 8, static_cast<uint32_t>(status));
  commit(scope, record);
}

int arctrace_shim_can_read(char* const* list) {
  ReadableMemory entries;
  ReadableMemory texts;
  for (; list != nullptr; ++list) {
    if (!entries.has(list, sizeof *list)) return 0;
    if (*list == nullptr) break;
    if (texts.text_length(*list, LONG_MAX) < 0) return 0;
  }
  return 1;
}

uint32_t arctrace_shim_executes(const struct arctrace_shim_program* named) {
  if (!may_call_kernel()) return executes_confined(*named);
  const FoundProgram program(*named);
  uint32_t why = program.why_untraceable();
  if (!session.joined || *arctrace_gate == 0 || program.path() == nullptr) return why;
  if (why == 0 && !may_access(AT_FDCWD, session_path, R_OK | W_OK)) {
    why = ARCTRACE_UNTRACED_REACH;
  }
  if (why != 0 && may_access(program.folder(), program.path(), X_OK)) {
    say_untraced(program.path(), why);
  }
  return why;
}

void arctrace_shim_vfork_begin(void) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_vfork_begin();
}

void arctrace_shim_vfork_end(uint32_t child_pid) {
  if (is_open(ARCTRACE_GATE_FUNCTIONS)) record_vfork_end(child_pid);
}

uint32_t arctrace_shim_forbidden_by(const struct sock_fprog* filter) {
  return session.joined ? uses_forbidden_by(filter) : 0;
}

void arctrace_shim_forbid(uint32_t uses) {
  if (session.joined && *arctrace_gate != 0) {
    // What was forked to confine itself may have no record so far.
    const WriteScope scope;
    if (!scope.nested() && !scope.refused()) attached_thread(scope, session_ticks());
  }
  if (session.joined && may_call_kernel()) {
    process_facts();
    if ((uses & kThreadUse) == 0) prepare_thread_states();
  }
  forbid_uses(uses);
}

void arctrace_shim_take_back_forbidden(uint32_t uses) { take_back_forbidden(uses); }

void arctrace_shim_no_counter(void) {
  if (session.joined) use_coarse_clock();
}

// A program started by `arctrace record` finds its session in the environment.
__attribute__((constructor(101))) static void attach_at_load(void) {
  arctrace_attach(nullptr);
}
