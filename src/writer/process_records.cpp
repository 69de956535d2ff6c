#include "src/writer/process_records.hpp"

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/process_facts.hpp"
#include "src/process/session.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/protocol/moments.hpp"
#include "src/protocol/recycle.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kUntracedPathMax = 1024;

// Calls use(scope, state, process, ticks) if the thread has a slot or gets one.
template <class Use>
void as_attached_thread(const Use& use) {
  if (!session.joined) return;
  const WriterCall writer_call;
  if (writer_call.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(writer_call, ticks);
  ProcessState* process = current_process(ticks);
  if (state == nullptr || process == nullptr) return;
  use(writer_call, *state, *process, ticks);
}

bool is_defined(ProcessState& process) {
  return IpcAtomics::load_acquire(process.defined) != 0;
}

// For the recorder, which by itself finds only the program file of a process that lives
// long enough.
void record_jit_dump(ThreadState& state, ProcessState& process, uint64_t ticks) {
  // Not on the stack, which may be a signal handler's small one. Only the first thread
  // that ends the process uses it.
  static char path[8192];
  static uint32_t claim;
  uint32_t unclaimed = 0;
  if (!may_call_kernel() ||
      !IpcAtomics::compare_exchange_acq_rel(claim, unclaimed, uint32_t{1})) {
    return;
  }
  const uint32_t n = find_jit_dump(process.pid, path, sizeof path);
  if (n == 0) return;
  const arctrace_jitdump_body body{.process = process.id, .path_size = n};
  const BodyPart parts[] = {{&body, sizeof body}, {path, n}};
  write_parts(state, process, ARCTRACE_TYPE_JITDUMP, parts, 2, ticks);
}

}  // namespace

void record_own_name(const char* name) {
  as_attached_thread(
      [=](Nesting nesting, ThreadState& state, ProcessState& process, uint64_t) {
        if (nesting.nested()) return;
        const size_t n = name == nullptr ? 0 : text_length(name, sizeof state.name - 1);
        copy_bytes(state.name, name, n);
        state.name[n] = '\0';
        state.definitions.has_thread = false;
        emit_definitions(state, process);
      });
}

void record_name_of(uint32_t tid, const char* name) {
  as_attached_thread(
      [=](Nesting nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        if (nesting.nested() || !is_defined(process)) return;
        const uint32_t used = Recycle<IpcAtomics>::slots_used(session.view);
        for (uint32_t i = 0; i < used; ++i) {
          arctrace_writer_slot& slot = session.view.slot(i);
          if (IpcAtomics::load_relaxed(slot.tid) != tid ||
              IpcAtomics::load_relaxed(slot.process) != process.id ||
              !is_live(IpcAtomics::load_acquire(slot.lock))) {
            continue;
          }
          const ThreadFacts thread{IpcAtomics::load_relaxed(slot.writer), tid,
                                   IpcAtomics::load_relaxed(slot.start_ticks), name};
          write_thread(state, process, thread, ticks);
          return;
        }
      });
}

void record_untraced(const char* path, uint32_t why) {
  as_attached_thread([=](Nesting, ThreadState& state, ProcessState& process,
                         uint64_t ticks) {
    emit_definitions(state, process);
    const auto n = static_cast<uint32_t>(text_length(path, kUntracedPathMax));
    const arctrace_untraced_body body{.process = process.id, .why = why, .path_size = n};
    const BodyPart parts[] = {{&body, sizeof body}, {path, n}};
    write_parts(state, process, ARCTRACE_TYPE_UNTRACED, parts, 2, ticks);
  });
}

void record_process_end(uint32_t how, int32_t status) {
  const bool is_exec = how == ARCTRACE_END_EXEC || how == ARCTRACE_END_NONE;
  // A child that was forked only to execute a program has recorded nothing so far, and
  // does not record this either.
  if (is_exec && (!may_call_kernel() || sys::getpid() != known_pid())) return;
  as_attached_thread(
      [=](Nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        emit_definitions(state, process);
        if (!is_defined(process)) return;  // readers don't know the process
        if (!is_exec) record_jit_dump(state, process, ticks);
        const arctrace_process_end_body body{
            .process = process.id, .how = how, .status = status};
        const BodyPart parts[] = {{&body, sizeof body}};
        write_parts(state, process, ARCTRACE_TYPE_PROCESS_END, parts, 1, ticks);
      });
}

void record_phase(uint32_t phase) {
  as_attached_thread(
      [=](Nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        emit_definitions(state, process);
        if (!is_defined(process)) return;  // readers don't know the process
        const arctrace_phase_body body{.process = process.id, .phase = phase};
        const BodyPart parts[] = {{&body, sizeof body}};
        write_parts(state, process, ARCTRACE_TYPE_PHASE, parts, 1, ticks);
      });
}

void record_helper(uint32_t pid) {
  as_attached_thread([=](Nesting, ThreadState& state, ProcessState& process,
                         uint64_t ticks) {
    emit_definitions(state, process);
    if (!is_defined(process)) return;  // readers don't know the process
    const arctrace_helper_body body{
        .process = process.id, .phase = ARCTRACE_LIFE_HELPER, .pid = pid, .reserved = 0};
    const BodyPart parts[] = {{&body, sizeof body}};
    write_parts(state, process, ARCTRACE_TYPE_PHASE, parts, 1, ticks);
  });
}

void note_exec(uint32_t pid, uint64_t ticks) {
  if (!session.joined) return;
  if (pid == 0) {
    const bool asks = may_call_kernel();
    pid = asks ? static_cast<uint32_t>(sys::getpid()) : known_pid();
  }
  const uint64_t now = session_ticks();
  if (ticks == 0 || ticks > now) ticks = now;
  if (pid == 0) return;
  note_moment(execs(session.view), ticks, ExecMoment{pid, now - ticks}.pack());
}

}  // namespace arctrace
