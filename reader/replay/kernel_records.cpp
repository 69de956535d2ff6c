// Finds the threads that the kernel's records are about, and tells them when interrupts
// begin and end.
#include "reader/replay/kernel_records.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "reader/replay/thread_stack.hpp"
#include "reader/trace/record.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

uint32_t cpu_of_kernel(const Record& record) {
  return load_part_untrusted<arctrace_kernel_body>(record.body).cpu;
}

// The number of every CPU's idle thread.
constexpr uint32_t kIdleTid = 0;

// Returns when the thread began: a program's first thread begins before its first record.
int64_t begin_of(const Definitions& definitions, ThreadIndex thread) {
  const int64_t exec = definitions.life_begin_ns(thread);
  return exec == INT64_MIN ? definitions.threads()[thread].start_ns : exec;
}

}  // namespace

Dispatches::Dispatches(const Definitions& definitions, bool all_threads,
                       std::function<ThreadStack*(ThreadIndex)> stack_of,
                       ScheduleListener* schedule)
    : definitions_(definitions), stack_of_(std::move(stack_of)), schedule_(schedule) {
  const std::span<const Thread> threads = definitions.threads();
  for (ThreadIndex i = 0; i < threads.size(); ++i) {
    // A thread whose definition is in another file has the number 0, but is no idle
    // thread.
    if (threads[i].of_kernel() || threads[i].tid == kIdleTid) continue;
    const Process* process = definitions.process(threads[i].process);
    const uint32_t space = process == nullptr ? 0 : process->pid_namespace;
    by_number_[{space, threads[i].tid}].push_back(i);
  }
  for (auto& [number, list] : by_number_) {
    std::stable_sort(list.begin(), list.end(), [&](ThreadIndex a, ThreadIndex b) {
      return begin_of(definitions, a) < begin_of(definitions, b);
    });
  }
  for (ThreadIndex i = 0; i < threads.size(); ++i) {
    if (!threads[i].of_kernel() || threads[i].tid == kIdleTid) continue;
    if (threads[i].interrupts_of.has_value()) continue;
    if (all_threads || threads[i].is_silent) silent_[threads[i].tid] = i;
  }
}

void Dispatches::set_own_numbers(OwnNumbers numbers) {
  own_numbers_ = std::move(numbers);
  for (const auto& [tid, own] : own_numbers_) named_.insert(own);
}

bool Dispatches::can_name(ThreadIndex thread) const {
  const Thread& facts = definitions_.threads()[thread];
  if (facts.of_kernel()) return true;
  if (facts.tid == kIdleTid) return false;
  const Process* process = definitions_.process(facts.process);
  const uint32_t space = process == nullptr ? 0 : process->pid_namespace;
  return space == 0 || named_.contains({space, facts.tid});
}

bool Dispatches::is_over(ThreadIndex thread) const {
  const ThreadStack* stack = stack_of_(thread);
  return stack != nullptr && stack->is_gone();
}

ThreadIndex Dispatches::fork_child(uint32_t tid) const {
  const auto silent = silent_.find(tid);
  if (silent == silent_.end() || vfork_children_.contains(tid)) return kNoIndex;
  const bool has_process = definitions_.process_of(silent->second) != nullptr;
  return has_process ? silent->second : kNoIndex;
}

ThreadIndex Dispatches::find(uint32_t tid, int64_t time_ns) const {
  const auto found = silent_.find(tid);
  const ThreadIndex silent = found == silent_.end() ? kNoIndex : found->second;
  const auto own = own_numbers_.find(tid);
  const bool is_renumbered = own != own_numbers_.end();
  // If a renumbered thread has no records of its own, one that has some and the same
  // number in the first namespace is an earlier one.
  const OwnNumber number = is_renumbered ? own->second : OwnNumber{0, tid};
  const auto list = by_number_.find(number);
  if (list == by_number_.end()) return silent;
  const auto created = created_.find(number);
  if (created != created_.end() && time_ns < begin_of(definitions_, created->second)) {
    return created->second;
  }
  // The thread that had begun last has the number: the end of an earlier one is recorded
  // late, or never.
  const auto next = std::upper_bound(
      list->second.begin(), list->second.end(), time_ns,
      [&](int64_t time, ThreadIndex i) { return time < begin_of(definitions_, i); });
  if (next == list->second.begin()) return fork_child(tid);
  const ThreadIndex last = *(next - 1);
  const bool is_silent =
      silent != kNoIndex && next == list->second.end() && is_over(last);
  return is_silent ? silent : last;
}

ThreadStack* Dispatches::find_stack(uint32_t tid, int64_t time_ns) const {
  const ThreadIndex thread = find(tid, time_ns);
  return thread == kNoIndex ? nullptr : stack_of_(thread);
}

ThreadStack* Dispatches::stack_that_runs(uint32_t tid, int64_t time_ns) const {
  if (const auto found = vfork_parents_.find(tid); found != vfork_parents_.end()) {
    ThreadStack* parent = stack_of_(found->second);
    if (parent != nullptr && parent->in_vfork()) return parent;
  }
  return find_stack(tid, time_ns);
}

ThreadStack* Dispatches::running(const Record& record) const {
  const Thread* thread = definitions_.thread(record.thread);
  return thread == nullptr ? nullptr : stack_that_runs(thread->tid, record.time_ns);
}

// A thread that waits for its vfork child is woken when that executes a program or ends.
void Dispatches::woken(const Record& record, uint32_t tid, const Waker& waker) {
  const ThreadIndex thread = find(tid, record.time_ns);
  const size_t children = absl::erase_if(
      vfork_parents_, [&](const auto& child) { return child.second == thread; });
  if (children == 0) {
    ThreadStack* stack = stack_that_runs(tid, record.time_ns);
    if (stack != nullptr) stack->woken(record.time_ns, waker);
    return;
  }
  ThreadStack* parent = stack_of_(thread);
  if (parent != nullptr && parent->in_vfork()) parent->resumable(record.time_ns, waker);
}

// The idle thread wakes no other; if it seems to, an interrupt came while it ran. The
// frames upon which an interrupt came are not the waker.
Waker Dispatches::waker_of(const Record& record, uint32_t tid, uint32_t context) const {
  Waker waker;
  waker.context = context;
  waker.interrupt = tid == kIdleTid || (context & ARCTRACE_WAKING_INTERRUPT) != 0;
  waker.thread = find(tid, record.time_ns);
  if (waker.thread == kNoIndex) {
    waker.thread = record.thread;
  } else if (const ThreadStack* stack = stack_of_(waker.thread);
             stack != nullptr && !waker.interrupt) {
    waker.node = stack->innermost();
  }
  return waker;
}

// The child is the first thread with this number that has not run yet. If it is a process
// that writes records, it begins with the time at which its parent called fork, which has
// passed; another thread of the process begins now. The child is searched for when it is
// created, because its number may be given again.
void Dispatches::forked(const Record& record, uint32_t parent_tid, OwnNumber child) {
  ThreadStack* parent = find_stack(parent_tid, record.time_ns);
  if (parent != nullptr) parent->ran_until(record.time_ns, cpu_of_kernel(record));
  if (parent == nullptr) return;
  const ThreadIndex maker = find(parent_tid, record.time_ns);
  const auto made = [&](ThreadIndex thread) {
    ThreadStack* stack = stack_of_(thread);
    const Thread& facts = definitions_.threads()[thread];
    if (stack != nullptr && facts.process == definitions_.threads()[maker].process) {
      created_[child] = thread;
      stack->created(record.time_ns);
    }
    if (schedule_ == nullptr) return;
    schedule_->thread_made({.parent = maker,
                            .child = thread,
                            .time_ns = record.time_ns,
                            .runs_in_parent = parent->in_vfork()});
  };
  const auto list = by_number_.find(child);
  if (list == by_number_.end()) {
    const auto silent = silent_.find(child.tid);
    if (child.pid_namespace == 0 && silent != silent_.end()) made(silent->second);
    return;
  }
  auto next = std::lower_bound(
      list->second.begin(), list->second.end(), record.time_ns,
      [&](ThreadIndex i, int64_t time) { return begin_of(definitions_, i) < time; });
  if (next != list->second.begin() &&
      definitions_.threads()[*(next - 1)].start_ns >= record.time_ns) {
    --next;
  }
  if (next == list->second.end()) return;
  const ThreadIndex child_before_exec = fork_child(child.tid);
  const bool has_own = next == list->second.begin() && child_before_exec != kNoIndex;
  made(has_own ? child_before_exec : *next);
}

// The program that begins now has the number of the one that ends. If it has no records,
// only the end of the other one shows that.
void Dispatches::executed(const Record& record, uint32_t tid) {
  ThreadStack* begun = find_stack(tid, record.time_ns);
  ThreadStack* ended =
      record.time_ns == INT64_MIN ? begun : find_stack(tid, record.time_ns - 1);
  if (ended != nullptr && ended != begun) ended->apply_kernel(record);
  if (begun != nullptr) begun->apply_kernel(record);
  // The program goes on where the fork child was.
  const ThreadIndex child = fork_child(tid);
  const ThreadIndex program = find(tid, record.time_ns);
  if (schedule_ != nullptr && ended != nullptr && ended != begun && child != kNoIndex &&
      program != kNoIndex && ended == stack_of_(child)) {
    schedule_->thread_made({.parent = child,
                            .child = program,
                            .time_ns = record.time_ns,
                            .runs_in_parent = false});
  }
  ThreadStack* silent = find_stack(tid, record.time_ns);
  if (silent != nullptr && silent != begun) {
    silent->got_cpu(record.time_ns, cpu_of_kernel(record));
  }
}

void Dispatches::apply(const Record& record) {
  const Thread* running = definitions_.thread(record.thread);
  if (running == nullptr) return;
  const uint32_t cpu = cpu_of_kernel(record);
  switch (record.type) {
    case ARCTRACE_TYPE_SWITCH: {
      const auto body = load_part_untrusted<arctrace_switch_body>(record.body);
      if (ThreadStack* previous = stack_that_runs(running->tid, record.time_ns)) {
        previous->left_cpu(record.time_ns, cpu, body.prev_state);
      }
      if (ThreadStack* next = stack_that_runs(body.next_tid, record.time_ns)) {
        next->got_cpu(record.time_ns, cpu);
      }
      break;
    }
    case ARCTRACE_TYPE_SWITCH_IN:
      if (ThreadStack* stack = stack_that_runs(running->tid, record.time_ns)) {
        stack->got_cpu(record.time_ns, cpu);
      }
      break;
    case ARCTRACE_TYPE_WAKING: {
      const auto body = load_part_untrusted<arctrace_waking_body>(record.body);
      if (ThreadStack* stack = find_stack(running->tid, record.time_ns)) {
        if ((body.context & ARCTRACE_WAKING_INTERRUPT) != 0) {
          stack->interrupted(record.time_ns, cpu);
        } else {
          stack->ran_until(record.time_ns, cpu);
        }
      }
      woken(record, body.woken_tid, waker_of(record, running->tid, body.context));
      break;
    }
    case ARCTRACE_TYPE_FORKED: {
      const uint32_t child =
          load_part_untrusted<arctrace_forked_body>(record.body).child_tid;
      own_numbers_.erase(child);
      vfork_parents_.erase(child);
      const ThreadIndex parent = find(running->tid, record.time_ns);
      const ThreadStack* stack = parent == kNoIndex ? nullptr : stack_of_(parent);
      vfork_children_.erase(child);
      if (stack != nullptr && stack->in_vfork()) {
        vfork_parents_[child] = parent;
        vfork_children_.insert(child);
      }
      forked(record, running->tid, {0, child});
      break;
    }
    case ARCTRACE_TYPE_NUMBERED: {
      const auto body = load_part_untrusted<arctrace_numbered_body>(record.body);
      const OwnNumber own{body.pid_namespace, body.own_tid};
      own_numbers_[body.child_tid] = own;
      named_.insert(own);
      forked(record, running->tid, own);
      break;
    }
    case ARCTRACE_TYPE_EXECED:
      executed(record, running->tid);
      break;
    case ARCTRACE_TYPE_EXITED:
    case ARCTRACE_TYPE_SYSCALL:
    case ARCTRACE_TYPE_SYSCALL_END:
    case ARCTRACE_TYPE_PAGE_FAULT:
    case ARCTRACE_TYPE_SIGNAL:
    case ARCTRACE_TYPE_CONTENTION:
    case ARCTRACE_TYPE_CONTENTION_END:
      if (ThreadStack* stack = find_stack(running->tid, record.time_ns)) {
        stack->apply_kernel(record);
      }
      break;
    case ARCTRACE_TYPE_BLOCK_IO:
    case ARCTRACE_TYPE_BLOCK_IO_END:
      if (ThreadStack* stack = find_stack(running->tid, record.time_ns)) {
        stack->block_io(record);
      }
      break;
    case ARCTRACE_TYPE_NAMED:
      if (ThreadStack* stack = find_stack(running->tid, record.time_ns)) {
        stack->not_recorded(record.time_ns);
      }
      break;
    default:
      break;
  }
}

namespace {

// A kernel's interrupts nest two deep.
constexpr size_t kNestedMax = 16;

// Returns the end of an interrupt. In a hostile trace the duration is any number.
int64_t end_of(int64_t begin_ns, uint64_t duration_ns) {
  const uint64_t left =
      static_cast<uint64_t>(INT64_MAX) - static_cast<uint64_t>(begin_ns);
  return static_cast<int64_t>(static_cast<uint64_t>(begin_ns) +
                              std::min(duration_ns, left));
}

}  // namespace

// ---- Interrupts -------------------------------------------------------------------

Interrupts::Interrupts(ReplayState& state,
                       const std::function<bool(ThreadIndex)>& wants_thread)
    : state_(state) {
  const std::span<const Thread> threads = state.definitions.threads();
  for (ThreadIndex i = 0; i < threads.size(); ++i) {
    const std::optional<uint32_t>& cpu = threads[i].interrupts_of;
    if (!cpu.has_value() || (wants_thread && !wants_thread(i))) continue;
    threads_.emplace(*cpu, i);
  }
}

Interrupts::Cpu& Interrupts::cpu_of(uint32_t cpu) {
  const auto [found, added] = cpus_.try_emplace(cpu);
  const auto thread = threads_.find(cpu);
  if (added && thread != threads_.end()) {
    found->second.thread = thread->second;
    found->second.frames = std::make_unique<FrameStack>(state_, thread->second);
  }
  return found->second;
}

void Interrupts::begin(const Record& record, ThreadStack* interrupted) {
  BodyReader reader(record.body);
  const auto body = reader.read<arctrace_interrupt_body>();
  const std::string_view name = reader.text(body.name_size);
  Cpu& cpu = cpu_of(body.cpu);
  // A CPU runs another thread only when it has served its interrupts.
  while (!cpu.ends_ns.empty() && cpu.interrupted != interrupted) {
    end_innermost(cpu, record.time_ns);
  }
  if (interrupted != nullptr) interrupted->begin_interrupt(record.time_ns, body.cpu);
  if (cpu.ends_ns.size() == kNestedMax) return;
  int64_t end_ns = end_of(record.time_ns, body.duration_ns);
  if (cpu.ends_ns.empty()) {
    cpu.interrupted = interrupted;
    serving_.push_back(&cpu);
  } else {
    end_ns = std::min(end_ns, cpu.ends_ns.back());
  }
  if (cpu.frames != nullptr) {
    FrameStack& frames = *cpu.frames;
    if (!frames.has_begun()) frames.begin(record.time_ns);
    if (cpu.ends_ns.empty()) {
      frames.skip(record.time_ns);
    } else {
      frames.advance(record.time_ns, RunState::kRunning);
    }
    frames.push_kernel(0, state_.kernel_functions.interrupt(body.kind, body.number, name),
                       0);
  }
  cpu.ends_ns.push_back(end_ns);
  next_end_ns_ = std::min(next_end_ns_, end_ns);
}

// Ends interrupts in the order of their ends, on whatever CPU.
void Interrupts::end_due(int64_t time_ns) {
  while (!serving_.empty() && next_end_ns_ <= time_ns) {
    const auto next = std::min_element(
        serving_.begin(), serving_.end(),
        [](const Cpu* a, const Cpu* b) { return a->ends_ns.back() < b->ends_ns.back(); });
    end_innermost(**next, INT64_MAX);
  }
}

void Interrupts::end_innermost(Cpu& cpu, int64_t latest_ns) {
  const int64_t end_ns = std::min(cpu.ends_ns.back(), latest_ns);
  cpu.ends_ns.pop_back();
  if (cpu.frames != nullptr) {
    cpu.frames->advance(end_ns, RunState::kRunning);
    cpu.frames->leave_kernel(1, 0);
  }
  if (cpu.ends_ns.empty()) {
    if (cpu.interrupted != nullptr) cpu.interrupted->end_interrupt(end_ns);
    std::erase(serving_, &cpu);
  }
  find_next_end();
}

void Interrupts::find_next_end() {
  next_end_ns_ = INT64_MAX;
  for (const Cpu* cpu : serving_) {
    next_end_ns_ = std::min(next_end_ns_, cpu->ends_ns.back());
  }
}

void Interrupts::finish(int64_t time_ns) {
  while (!serving_.empty()) end_innermost(*serving_.front(), time_ns);
  for (auto& [number, cpu] : cpus_) {
    if (cpu.frames == nullptr) continue;
    FrameStack& frames = *cpu.frames;
    frames.finish();
    const CallNode& root = state_.tree[frames.root()];
    if (root.first_child == kNoNode && root.self_ns == 0) continue;
    trees_.push_back({cpu.thread, frames.root(), frames.start_ns(), frames.stop_ns(), 0});
  }
}

}  // namespace arctrace::reader
