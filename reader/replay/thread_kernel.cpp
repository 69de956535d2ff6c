// Applies the kernel's records of a thread, and the frames that they make on its stack.
#include <csignal>
#include <utility>

#include "reader/replay/thread_stack.hpp"
#include "reader/trace/record_types.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// The kernel's TASK_* bits.
constexpr uint32_t kTaskUninterruptible = 2;
constexpr uint32_t kTaskDead = 0x80;
// The number of a call that a debugger has taken back.
constexpr uint32_t kNoSyscall = UINT32_MAX;

// Whether a signal ends its process unless that has another action for it.
bool ends_by_default(uint32_t signal) {
  return signal != SIGCHLD && signal != SIGCONT && signal != SIGURG &&
         signal != SIGWINCH && signal != SIGSTOP && signal != SIGTSTP &&
         signal != SIGTTIN && signal != SIGTTOU;
}

uint32_t cpu_of(const Record& record) {
  return load_part_untrusted<arctrace_kernel_body>(record.body).cpu;
}

}  // namespace

// Whether a record of the kernel's is about this thread: before the thread's own first
// record and after its end its number is another thread's. A number that only the
// kernel's records know may have several threads in turn.
bool ThreadStack::follows_kernel(int64_t time_ns) {
  if (kernel_only_ && is_gone_) is_gone_ = has_exited_ = false;
  if (kernel_only_ && !frames_.has_begun()) begin(time_ns);
  // A program's first thread exists from its exec on, and a later one from its start on.
  if (!kernel_only_ && !frames_.has_begun() && begins_at_ns() <= time_ns) {
    begin_life(time_ns);
  }
  return frames_.has_begun() && !is_gone_;
}

void ThreadStack::report_signal(const Record& record) {
  const uint64_t instruction = read_signal_place(record.body).instruction;
  if (instruction == 0 || state_.listener == nullptr || !frames_.in_range()) return;
  state_.listener->signal_came({thread_, resolve(instruction), record.time_ns});
}

// A signal ends the process: the kernel writes its core and takes it down, which is no
// function's time. A vfork child's end is not its parent's.
void ThreadStack::die_of(const Record& record) {
  const auto body = load_part_untrusted<arctrace_signal_body>(record.body);
  if (is_dying_ || frames_.in_vfork() || body.action != ARCTRACE_SIGNAL_DEFAULT ||
      !ends_by_default(body.signal)) {
    return;
  }
  is_dying_ = true;
  frames_.push_part(state_.made_up.exit());
}

// The kernel spares the first process of a PID namespace most signals.
void ThreadStack::go_on_living() {
  if (!std::exchange(is_dying_, false)) return;
  kernel_.leave_all(true);
  if (frames_.in_part()) frames_.leave_part();
}

void ThreadStack::apply_kernel(const Record& record) {
  if (!follows_kernel(record.time_ns)) return;
  // A thread that ends does not call the kernel any more: another thread has its number.
  if (has_exited_ &&
      (record.type == ARCTRACE_TYPE_SYSCALL || record.type == ARCTRACE_TYPE_EXECED ||
       record.type == ARCTRACE_TYPE_EXITED)) {
    is_gone_ = !kernel_only_;
    has_exited_ = is_gone_;
    if (is_gone_) return;
  }
  run_until(record.time_ns, cpu_of(record));
  // Up to the thread's last SWITCH, the kernel works to end it.
  if (record.type == ARCTRACE_TYPE_EXITED) {
    has_exited_ = true;
    const auto body = load_part_untrusted<arctrace_exited_body>(record.body);
    if (body.status_of == ARCTRACE_STATUS_OF_PROCESS && process_ != kNoIndex) {
      state_.exit_statuses[process_] = body.status;
    }
    return;
  }
  // The exec with which the thread began comes before it joins.
  if (record.type == ARCTRACE_TYPE_EXECED &&
      record.time_ns >= state_.definitions.threads()[thread_].start_ns) {
    is_gone_ = !kernel_only_;
    return;
  }
  if (record.type == ARCTRACE_TYPE_SIGNAL) report_signal(record);
  // The waits of interrupts are not the thread's.
  const bool is_wait = record.type == ARCTRACE_TYPE_CONTENTION ||
                       record.type == ARCTRACE_TYPE_CONTENTION_END;
  if (is_wait && schedule_.is_interrupted()) return;
  if (record.type == ARCTRACE_TYPE_SYSCALL) go_on_living();
  kernel_.apply(record);
  if (record.type == ARCTRACE_TYPE_SIGNAL) die_of(record);
}

std::optional<StateInfo> ThreadStack::state_at(int64_t now_ns) const {
  if (!frames_.has_begun() || is_gone_) return std::nullopt;
  StateInfo state = schedule_.current();
  // An interrupted thread runs on before its next record.
  if (state.interrupted) {
    state.state = RunState::kRunning;
    state.preempted = state.interrupted = false;
  }
  if (schedule_.known_until_ns() < now_ns) {
    state = {};
    state.thread = thread_;
    state.state = RunState::kNotKnown;
    state.start_ns = schedule_.known_until_ns();
    state.node = frames_.top().node;
  }
  return state;
}

void ThreadStack::go_on(int64_t time_ns, const StateInfo& state) {
  follows_kernel(time_ns);
  if (!frames_.has_begun()) begin(time_ns);
  run_until(time_ns);
  schedule_.go_on(state);
}

void ThreadStack::go_on_in_kernel(const Record& record) {
  if (follows_kernel(record.time_ns)) kernel_.apply(record, kFrameInherited);
}

void ThreadStack::left_cpu(int64_t time_ns, uint32_t cpu, uint32_t task_state) {
  if (!follows_kernel(time_ns)) return;
  run_until(time_ns, cpu);
  frames_.count_switch();
  schedule_.leave(task_state);
  is_gone_ = has_exited_ && task_state != ARCTRACE_SWITCH_UNKNOWN &&
             (task_state & kTaskDead) != 0;
}

void ThreadStack::woken(int64_t time_ns, const Waker& waker) {
  if (!follows_kernel(time_ns)) return;
  const RunState before = schedule_.state();
  if (before != RunState::kBlocked && before != RunState::kNotKnown) return;
  pass(time_ns);
  schedule_.wake(waker);
}

void ThreadStack::got_cpu(int64_t time_ns, uint32_t cpu) {
  if (follows_kernel(time_ns)) run_until(time_ns, cpu);
}

void ThreadStack::resumable(int64_t time_ns, const Waker& waker) {
  if (!follows_kernel(time_ns)) return;
  pass(time_ns);
  schedule_.leave(kTaskUninterruptible);
  schedule_.wake(waker);
}

void ThreadStack::ran_until(int64_t time_ns, uint32_t cpu) {
  if (follows_kernel(time_ns)) run_until(time_ns, cpu);
}

void ThreadStack::not_recorded(int64_t time_ns) {
  if (!frames_.has_begun() || is_gone_ ||
      time_ns < state_.definitions.threads()[thread_].start_ns) {
    return;
  }
  pass(time_ns);
  schedule_.set_foreign();
}

void ThreadStack::leave_kernel_frames(int64_t time_ns) {
  if (!frames_.has_begun() || is_gone_ || !kernel_.has_open()) return;
  pass(time_ns);
  kernel_.leave_all(true);
}

void ThreadStack::interrupted(int64_t time_ns, uint32_t cpu) {
  if (!follows_kernel(time_ns)) return;
  run_until(time_ns, cpu);
  if (!schedule_.is_interrupted()) frames_.count_interrupt();
}

void ThreadStack::begin_interrupt(int64_t time_ns, uint32_t cpu) {
  if (!follows_kernel(time_ns)) return;
  run_until(time_ns, cpu);
  frames_.count_interrupt();
  schedule_.interrupt(cpu);
}

void ThreadStack::end_interrupt(int64_t time_ns) {
  if (is_gone_ || !schedule_.is_interrupted()) return;
  pass(time_ns);
  if (schedule_.is_interrupted()) schedule_.resume();
}

void ThreadStack::block_io(const Record& record) {
  if (!follows_kernel(record.time_ns)) return;
  if (record.type == ARCTRACE_TYPE_BLOCK_IO) {
    run_until(record.time_ns, cpu_of(record));
  }
  frames_.set_record_time(record.time_ns);
  frames_.point(PointInfo::Kind::kRecord, record, kUnknownFunction);
}

namespace {

// The kernel waits for few locks at a time; deeper nesting is not a kernel's.
constexpr size_t kDepthMax = 16;

}  // namespace

KernelFrames::KernelFrames(FrameStack& frames, ReplayState& state)
    : frames_(frames), state_(state) {}

void KernelFrames::apply(const Record& record, uint16_t flags) {
  switch (record.type) {
    case ARCTRACE_TYPE_SYSCALL: {
      const uint32_t number =
          load_part_untrusted<arctrace_syscall_body>(record.body).number;
      leave_all(true);
      if (number == kNoSyscall) break;
      open_.push_back({true, 0});
      frames_.push_kernel(0, state_.kernel_functions.syscall(number), flags);
      break;
    }
    case ARCTRACE_TYPE_SYSCALL_END:
      end_syscall(load_part_untrusted<arctrace_syscall_end_body>(record.body).result);
      break;
    case ARCTRACE_TYPE_PAGE_FAULT:
      count(state_.kernel_functions.page_fault());
      break;
    case ARCTRACE_TYPE_SIGNAL:
      leave_all(true);
      count(state_.kernel_functions.signal(
          load_part_untrusted<arctrace_signal_body>(record.body).signal));
      break;
    case ARCTRACE_TYPE_CONTENTION: {
      const uint64_t lock =
          load_part_untrusted<arctrace_contention_body>(record.body).lock;
      // This is the same wait, which goes on in another way.
      if (!open_.empty() && !open_.back().is_syscall && open_.back().lock == lock) break;
      if (open_.size() == kDepthMax) break;
      open_.push_back({false, lock});
      frames_.push_kernel(lock, state_.kernel_functions.contention(), flags);
      break;
    }
    case ARCTRACE_TYPE_CONTENTION_END:
      end_contention(load_part_untrusted<arctrace_contention_end_body>(record.body).lock);
      break;
    default:
      break;
  }
}

void KernelFrames::leave_all(bool lost) { leave(open_.size(), lost); }

// Searches first, so that an end that matches no frame changes nothing.
bool KernelFrames::find_end(bool is_syscall, uint64_t lock) {
  for (size_t i = open_.size(); i-- > 0;) {
    if (open_[i].is_syscall != is_syscall || open_[i].lock != lock) continue;
    leave(open_.size() - i - 1, true);
    return true;
  }
  return false;
}

void KernelFrames::end_syscall(int64_t result) {
  if (!find_end(true, 0)) return;
  frames_.syscall_result(result);
  leave(1, false);
}

void KernelFrames::end_contention(uint64_t lock) {
  if (find_end(false, lock)) leave(1, false);
}

void KernelFrames::leave(size_t count, bool lost) {
  if (lost) (frames_.in_range() ? state_.totals : state_.outside).exit_lost += count;
  open_.resize(open_.size() - count);
  frames_.leave_kernel(static_cast<uint32_t>(count), lost ? kFrameExitLost : 0);
}

void KernelFrames::count(FunctionId function) {
  frames_.push_kernel(0, function, 0);
  frames_.leave_kernel(1, 0);
}

}  // namespace arctrace::reader
