// Implements the writer's interface for the shim (shim_interface.h), except the hot path
// (hot_path.cpp).
#include "src/api/shim_interface.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "src/base/raw_syscall.hpp"
#include "src/calls/call_args.hpp"
#include "src/calls/call_filter.hpp"
#include "src/calls/call_records.hpp"
#include "src/calls/fast_path.hpp"
#include "src/calls/opening_frames.hpp"
#include "src/calls/slow_path_stack.hpp"
#include "src/calls/stack_switch.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/large_stack.hpp"
#include "src/os/process_facts.hpp"
#include "src/os/program_file.hpp"
#include "src/os/robust_lock.hpp"
#include "src/process/confinement.hpp"
#include "src/process/gate.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/stack/abandoned_frames.hpp"
#include "src/stack/call_edges.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/stack/open_calls.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/process_records.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {
namespace {

ClockTimes shim_start;

// Whether the kernel's records have system calls, those of this library, too. Relaxed, as
// all of the kernel's words are: no other memory depends on it (docs/memory_ordering.md).
bool records_syscalls() {
  arctrace_control& control = session.view.control();
  return (IpcAtomics::load_relaxed(control.kernel_recorded) & ARCTRACE_KERNEL_SYSCALLS) !=
         0;
}

// Whether a program that this process executes may access the file: as its real user, and
// without rights that exec takes away.
bool may_access(int directory, const char* path, int mode) {
  return raw_syscall(SYS_faccessat, directory, sys::pointer_argument(path), mode) == 0;
}

// The program that a confined process executes is confined as well, and would have to
// join to be traced. Where no file may be examined, the path is taken as it is given.
uint32_t executes_confined(const arctrace_shim_program& named) {
  constexpr uint32_t kWhy = ARCTRACE_UNTRACED_CONFINED;
  ReadableMemory readable;
  if (!session.joined || *arctrace_gate == 0 || named.path == nullptr ||
      readable.text_length(named.path, PATH_MAX) < 0) {
    return kWhy;
  }
  if (!may_use_kernel(kFileCheckUse)) {
    record_untraced(named.path, kWhy);
    return kWhy;
  }
  const FoundProgram program(named);
  if (program.path() != nullptr &&
      may_access(program.directory(), program.path(), X_OK)) {
    record_untraced(program.path(), kWhy);
  }
  return kWhy;
}

}  // namespace
}  // namespace arctrace::writer

using namespace arctrace;
using namespace arctrace::writer;  // the C functions below are the namespace's face

const char* arctrace_shim_session(void) {
  return session.joined ? session.path : nullptr;
}

enum arctrace_shim_session_state arctrace_shim_state_of_session(void) {
  return session.joined && may_call_kernel() ? session_state() : ARCTRACE_SHIM_GOES_ON;
}

void arctrace_shim_set_filter(const struct arctrace_shim_filter* filter) {
  if (session.joined) set_call_filter(*filter);
}

void arctrace_shim_set_filter_text(const char* text, uint32_t size) {
  if (!session.joined) return;
  define_filter_text({text, size});
  emit_from_this_thread();
}

void arctrace_shim_set_name_flags(arctrace_shim_name_flags* flags_of) {
  if (session.joined) set_flags_of_names(flags_of);
}

const volatile uint32_t* arctrace_shim_live_filter_number(void) {
  return session.joined ? &live_filter_area(session.view).round : nullptr;
}

int64_t arctrace_shim_copy_live_filter(uint64_t* text, uint32_t* generation) {
  if (!session.joined) return -1;
  return copy_filter_untrusted(live_filter_area(session.view), text, *generation);
}

void arctrace_shim_follow_live_filter(uint32_t generation, int filter_in_only) {
  if (session.joined) set_live_filter(generation, filter_in_only != 0);
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

void arctrace_shim_libc_thread(uint32_t tid) {
  set_libc_thread_id(tid);
  find_list_of_libc_thread();
}

uint64_t arctrace_shim_before_fork(void) {
  if (!session.joined) return 0;
  keep_frames_for_child(frame_end());
  return session_ticks();
}

int arctrace_shim_forked(uint32_t pid, uint64_t forked_ticks) {
  free_large_stacks();
  if (!session.joined) return 0;
  if (pid != 0) arctrace_shim_libc_thread(pid);
  const uint32_t parent = begin_forked_process(pid, forked_ticks);
  const bool in_library_call = parent != 0 && inherit_frames(parent);
  return in_library_call && gate_is_open(ARCTRACE_GATE_FUNCTIONS) && records_syscalls()
             ? 1
             : 0;
}

int arctrace_shim_tells_own_work(void) {
  const ThreadState* state = thread_local_state.state;
  return session.joined && gate_is_open(ARCTRACE_GATE_FUNCTIONS) && state != nullptr &&
                 state->attached && records_syscalls()
             ? 1
             : 0;
}

void arctrace_shim_thread_start(uintptr_t stack_low, uintptr_t stack_high) {
  thread_local_state.stacks.own = {stack_low, stack_high};
  thread_local_state.last_stack_before = last_coroutine_stack();
  begin_without_frames(thread_local_state);
  if (!session.joined) return;
  forget_dead_threads_calls();
  attach_this_thread();
  if (PendingCalls* calls = thread_local_state.calls; calls != nullptr) {
    calls->own = thread_local_state.stacks.own;
  }
}

void arctrace_shim_new_thread(uint32_t tid, uintptr_t stack_low, uintptr_t stack_high) {
  const bool tells_start = session.joined && *arctrace_gate != 0 && records_syscalls();
  const ClockTimes began = tells_start ? times_now() : ClockTimes{};
  arctrace_shim_libc_thread(tid);
  arctrace_shim_signal_stack(0, 0);  // the kernel sets none for a new thread
  arctrace_shim_thread_start(stack_low, stack_high);
  if (tells_start) record_start(TracerStart::kFirst, began);
}

// In a fork child the thread's state is free for others until this thread claims it
// again.
void arctrace_shim_before_thread(void) {
  follow_robust_list();
  attach_this_thread();
}

void arctrace_shim_signal_stack(uintptr_t low, uintptr_t high) {
  thread_local_state.stacks.signal = {low, high};
  thread_local_state.stacks.is_signal_known = true;
}

void arctrace_shim_set_open_frames(arctrace_shim_open_frames* find) {
  set_open_frames_finder(find);
}

void arctrace_shim_before_exit(const struct arctrace_shim_call* call) {
  if (!may_have_open_frames(thread_local_state)) return;
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) begin_before_exit(*call);
}

void arctrace_shim_set_unwinder(arctrace_shim_unwinder* unwinder) {
  set_unwinder(unwinder);
}

int arctrace_shim_call_begin_with_args(uint64_t frame_key, const uintptr_t* return_slot,
                                       uintptr_t frame_pointer, uint32_t flags,
                                       uint32_t args, const uintptr_t* arguments) {
  return call_began_with_args(frame_key, {return_slot, frame_pointer, flags}, args,
                              arguments);
}

void arctrace_shim_entry_only_call(uint64_t frame_key, const uintptr_t* return_slot,
                                   uintptr_t frame_pointer, uint32_t flags, int returns) {
  entry_only_call(frame_key, {return_slot, frame_pointer, flags}, returns != 0);
}

void arctrace_shim_entry_only_call_with_args(uint64_t frame_key,
                                             const uintptr_t* return_slot,
                                             uintptr_t frame_pointer, uint32_t flags,
                                             int returns, uint32_t args,
                                             const uintptr_t* arguments) {
  entry_only_call_with_args(frame_key, {return_slot, frame_pointer, flags}, returns != 0,
                            args, arguments);
}

void arctrace_shim_abandons_below(uintptr_t stack_pointer) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_abandoned_below(stack_pointer);
}

void arctrace_shim_thread_unwound(void) {
  const uintptr_t end = thread_local_state.stacks.own.high;
  if (end != 0) arctrace_shim_abandons_below(end - 1);
}

void arctrace_shim_makes_stack(uintptr_t low, uintptr_t high) {
  if (!session.joined) return;
  const WriterCall writer_call;
  if (!writer_call.refused() && !writer_call.nested()) note_coroutine_stack(low, high);
}

void arctrace_shim_switches_stack(uintptr_t stack_pointer, int jumps) {
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  record_stack_switch(stack_pointer, jumps == 0);
}

void arctrace_shim_set_call_args(const arctrace_shim_call_args* all) {
  set_call_args(all);
}

void arctrace_shim_set_call_conditions(const arctrace_shim_call_condition* all,
                                       uint32_t count) {
  if (session.joined) set_call_conditions(all, count);
}

const uint64_t* arctrace_shim_pending_calls(uintptr_t block) {
  set_stub_block(block);
  return &first_pending_calls;
}

void arctrace_shim_modules_changed(void) {
  forget_call_edges();
  follow_robust_list();
  if (!session.joined || !may_call_kernel()) return;
  scan_modules(session_ticks(), false);
  emit_from_this_thread();
}

int arctrace_shim_is_borrower(void) {
  return storage_is_shared() && is_borrower() ? 1 : 0;
}

void arctrace_shim_other_thread_name(uint32_t tid, const char* name) {
  record_name_of(tid, name);
}

void arctrace_shim_set_thread_attached(void (*attached)(void)) {
  set_thread_attached(attached);
}

void arctrace_shim_thread_end(void) {
  if (session.joined && *arctrace_gate != 0) record_thread_end();
}

void arctrace_shim_process_end(uint32_t how, int32_t status) {
  follow_robust_list();
  if (*arctrace_gate == 0) return;
  report_long_calls_at_end();
  record_process_end(how, status);
}

void arctrace_shim_start_begins(void) {
  if (session.joined) shim_start = times_now();
}

void arctrace_shim_started(void) {
  if (*arctrace_gate != 0) record_start(TracerStart::kLater, shim_start);
}

void arctrace_shim_process_phase(uint32_t phase) {
  if (*arctrace_gate != 0) record_phase(phase);
}

void arctrace_shim_helper(uint32_t pid) {
  if (session.joined && *arctrace_gate != 0) record_helper(pid);
}

uint64_t arctrace_shim_now(void) { return session.joined ? session_ticks() : 0; }

void arctrace_shim_exec(uint32_t pid, uint64_t ticks) {
  if (*arctrace_gate != 0) note_exec(pid, ticks);
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
  if (why == 0 && !may_access(AT_FDCWD, session.path, R_OK | W_OK)) {
    why = ARCTRACE_UNTRACED_REACH;
  }
  if (why != 0 && may_access(program.directory(), program.path(), X_OK)) {
    record_untraced(program.path(), why);
  }
  return why;
}

void arctrace_shim_leave(uint32_t why) {
  char path[PATH_MAX];
  const long size = sys::readlink("/proc/self/exe", path, sizeof path - 1);
  path[size > 0 ? size : 0] = '\0';
  if (session.joined && *arctrace_gate != 0) record_untraced(path, why);
  arctrace_detach();
}

void arctrace_shim_patches(uint32_t verdict, uint32_t count, const uint64_t* functions,
                           uint32_t listed) {
  if (!session.joined) return;
  const arctrace_patches_body body{
      .process = 0, .verdict = verdict, .count = count, .listed = listed, .reserved = 0};
  const BodyPart parts[] = {
      {&body, sizeof body},
      {functions, listed * static_cast<uint32_t>(sizeof *functions)}};
  add_definition(ARCTRACE_TYPE_PATCHES, parts, 2,
                 offsetof(arctrace_patches_body, reserved), session_ticks());
  emit_from_this_thread();
}

void arctrace_shim_hooked(uint32_t kind, uintptr_t function) {
  if (!session.joined) return;
  define_hooked(kind, function, session_ticks());
  emit_from_this_thread();
}

void arctrace_shim_set_full_block_hook(arctrace_shim_full_block* hook) {
  if (session.joined) set_full_block_hook(hook);
}

uint32_t arctrace_shim_own_memory(struct arctrace_shim_memory* ranges, uint32_t max) {
  if (!session.joined) return 0;
  if (may_call_kernel()) prepare_thread_states();
  uint32_t count = 0;
  const auto add = [&](uintptr_t low, uint64_t size) {
    if (count < max) ranges[count++] = {low, low + size};
  };
  add(reinterpret_cast<uintptr_t>(session.view.base()),
      session.view.geometry().total_size);
  for_each_arena(add);
  return count;
}

void arctrace_shim_shares_storage(void) {
  if (session.joined) share_storage();
}

void arctrace_shim_with_stack_space(void (*run)(void* data), void* data) {
  with_stack_space([=] { run(data); });
}

void arctrace_shim_vfork_begin(void) {
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_vfork_begin();
  // From here on the thread gets no slot, because that would be the child's.
  thread_local_state.is_vforking = true;
}

void arctrace_shim_vfork_end(uint32_t child_pid) {
  thread_local_state.is_vforking = false;
  if (is_recorded(ARCTRACE_GATE_FUNCTIONS)) record_vfork_end(child_pid);
}

uint32_t arctrace_shim_forbidden_by(const struct sock_fprog* filter) {
  return session.joined ? uses_forbidden_by(filter) : 0;
}

void arctrace_shim_forbid(uint32_t uses) {
  if (session.joined && *arctrace_gate != 0) {
    // A child that was forked to confine itself may have no record so far.
    const WriterCall writer_call;
    if (!writer_call.nested() && !writer_call.refused())
      attached_thread(writer_call, session_ticks());
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
