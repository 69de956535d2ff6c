#include "reader/replay/replay.hpp"

#include <algorithm>
#include <utility>

#include "reader/trace/gaps.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/recorded_times.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {

Replay::Replay(const Definitions& definitions, Symbolizer* symbolizer,
               ReplayOptions options)
    : state_(definitions, symbolizer, options.filter, options.clock, options.listener,
             options.schedule, options.max_findings),
      hidden_(definitions, nullptr, {}, options.clock, nullptr, nullptr, 0),
      dispatches_(
          definitions, options.all_threads,
          [this](ThreadIndex thread) { return stack_of_kernel(thread); },
          options.schedule),
      wants_thread_(std::move(options.wants_thread)),
      interrupts_(state_, wants_thread_),
      has_wake_ups_(options.has_wake_ups),
      entries_(definitions.threads().size()) {
  shown_names().set_full(options.full_names);
  dispatches_.set_own_numbers(std::move(options.own_numbers));
  for (ReplayState* state : {&state_, &hidden_}) {
    state->has_dispatches |= options.had_dispatches;
    state->ticks = options.ticks;
    state->costs = HookCosts(options.hook_costs);
    state->is_corrected = options.is_corrected;
    state->is_overwritten = options.mode == ARCTRACE_MODE_OVERWRITE;
  }
  for (const Process& process : definitions.processes()) {
    if (process.origin != ARCTRACE_ORIGIN_FORK) continue;
    threads_of_parents_.try_emplace(definitions.find_process(process.parent_id));
  }
  threads_of_parents_.erase(kNoIndex);
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    const auto parent = threads_of_parents_.find(definitions.threads()[i].process);
    if (parent != threads_of_parents_.end()) parent->second.push_back(i);
    for (const WaitingCall& call : definitions.threads()[i].waiting) {
      waiting_.emplace_back(call, i);
    }
    const Process* process = definitions.process_of(i);
    const bool is_forked = process != nullptr && process->origin == ARCTRACE_ORIGIN_FORK;
    if (is_forked && definitions.life_begin_ns(i) != INT64_MIN) {
      forks_.emplace_back(process->forked_ns, i);
    }
  }
  std::sort(forks_.begin(), forks_.end());
  std::stable_sort(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
    return a.first.time_ns < b.first.time_ns;
  });
}

// Applies waiting calls, which no record of their own thread told, as if it had.
void Replay::enter_waiting_until(int64_t time_ns) {
  while (next_waiting_ < waiting_.size() &&
         waiting_[next_waiting_].first.time_ns < time_ns) {
    const auto& [call, thread] = waiting_[next_waiting_++];
    const arctrace_frame_body body{.key = call.key};
    Record record{};
    record.ticks = call.ticks;
    record.time_ns = call.time_ns;
    record.thread = thread;
    record.type = ARCTRACE_TYPE_ENTER;
    record.body = std::as_bytes(std::span(&body, 1));
    apply(record);
  }
}

// Stores the open frames of threads that fork before that time, because they change until
// the children begin.
void Replay::note_forks_until(int64_t time_ns) {
  while (next_fork_ < forks_.size() && forks_[next_fork_].first < time_ns) {
    const auto [forked_ns, child] = forks_[next_fork_++];
    enter_waiting_until(forked_ns);
    if (ThreadStack* parent = parent_of(child)) {
      fork_points_.insert_or_assign(child, parent->fork_point_at(forked_ns));
    }
  }
}

void Replay::add(const Record& record) {
  note_forks_until(record.time_ns);
  enter_waiting_until(record.time_ns);
  apply(record);
}

void Replay::apply(const Record& record) {
  last_ns_ = std::max(last_ns_, record.time_ns);
  interrupts_.end_until(record.time_ns);
  if (record.type == ARCTRACE_TYPE_LOST) {
    const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
    if ((lost.flags & (ARCTRACE_LOST_RESIDUAL | ARCTRACE_LOST_SESSION)) != 0) {
      add_residual_loss(record, lost);
      return;
    }
  }
  if (record.thread >= entries_.size()) {
    if (record.type == ARCTRACE_TYPE_SESSION) session_point(record);
    if (record.type == ARCTRACE_TYPE_ENABLED) enabled(record);
    return;
  }
  if (class_of(record.type) == RecordClass::kKernel) {
    if (record.type == ARCTRACE_TYPE_INTERRUPT) {
      interrupts_.begin(record, dispatches_.running(record));
    }
    dispatches_.apply(record);
    return;
  }
  Entry& entry = entries_[record.thread];
  if (entry.stack == nullptr) {
    if (entry.known || record.type >= ARCTRACE_TYPE_PROCESS) return;
    if (stack_of(record.thread) == nullptr) return;
  }
  entry.stack->apply(record);
}

void Replay::go_on(ThreadIndex thread, int64_t time_ns, const StateInfo& state) {
  if (ThreadStack* stack = stack_of(thread)) stack->go_on(time_ns, state);
}

void Replay::go_on_in_kernel(const Record& record) {
  if (ThreadStack* stack = stack_of(record.thread)) stack->go_on_in_kernel(record);
}

std::optional<StateInfo> Replay::state_of(ThreadIndex thread) const {
  if (!has_dispatches() || thread >= entries_.size()) return std::nullopt;
  const ThreadStack* stack = entries_[thread].stack.get();
  return stack == nullptr ? std::nullopt : stack->state_at(last_ns_);
}

KnownTimes Replay::known_times() const {
  if (!has_dispatches()) return KnownTimes::kNone;
  return has_wake_ups_ ? KnownTimes::kReady : KnownTimes::kOffCpu;
}

ThreadStack* Replay::stack_of(ThreadIndex thread) {
  if (thread >= entries_.size()) return nullptr;
  Entry& entry = entries_[thread];
  if (!entry.known) {
    entry.known = true;
    entry.hidden = wants_thread_ && !wants_thread_(thread);
    const ProcessIndex process = state_.definitions.threads()[thread].process;
    if (!entry.hidden || threads_of_parents_.contains(process)) {
      entry.stack =
          std::make_unique<ThreadStack>(entry.hidden ? hidden_ : state_, thread);
      if (!dispatches_.can_name(thread)) entry.stack->not_named_by_kernel();
      inherit(thread, *entry.stack);
    }
  }
  return entry.stack.get();
}

// Returns the thread that forked the process of which `child` is the first thread: the
// one that the process names, else of the parent's threads the one that called fork last,
// or the only one that is known. Null: `child` is not the first, or none is known.
ThreadStack* Replay::parent_of(ThreadIndex child) {
  const Definitions& definitions = state_.definitions;
  const Process* process = definitions.process_of(child);
  if (process == nullptr || process->origin != ARCTRACE_ORIGIN_FORK ||
      process->pid != definitions.threads()[child].tid) {
    return nullptr;
  }
  if (process->forker != 0) {
    const ThreadIndex forker = definitions.find_thread(process->forker);
    return forker >= entries_.size() || forker == child ? nullptr
                                                        : entries_[forker].stack.get();
  }
  const auto parents =
      threads_of_parents_.find(definitions.find_process(process->parent_id));
  if (parents == threads_of_parents_.end()) return nullptr;
  ThreadStack* parent = nullptr;
  size_t candidates = 0;
  for (const ThreadIndex thread : parents->second) {
    ThreadStack* candidate = thread == child ? nullptr : entries_[thread].stack.get();
    if (candidate == nullptr) continue;
    ++candidates;
    if (parent == nullptr || candidate->fork_ns() > parent->fork_ns()) parent = candidate;
  }
  if (candidates > 1 && parent->fork_ns() == INT64_MIN) return nullptr;
  return parent;
}

// The first thread of a fork child begins in the frames of the thread that forked.
void Replay::inherit(ThreadIndex child, ThreadStack& stack) {
  ThreadStack::ForkPoint point;
  if (const auto noted = fork_points_.find(child); noted != fork_points_.end()) {
    point = std::move(noted->second);
    fork_points_.erase(noted);
  } else if (ThreadStack* parent = parent_of(child)) {
    point = parent->take_fork_point();
  }
  const Process* process = state_.definitions.process_of(child);
  point.is_guess = process != nullptr && process->forked_ns == INT64_MIN;
  // The child's own list of frames is right even if the forker's records are missing.
  if (process != nullptr && process->inherited.has_value() &&
      process->pid == state_.definitions.threads()[child].tid) {
    if (point.time_ns == INT64_MIN) point.time_ns = INT64_MAX;
    point.keys = *process->inherited;
    point.is_guess = false;
  }
  stack.inherit(std::move(point));
}

// The first thread of a process begins with its first own record if nothing else tells
// its begin.
ThreadStack* Replay::stack_of_kernel(ThreadIndex thread) {
  const Definitions& definitions = state_.definitions;
  const Thread& facts = definitions.threads()[thread];
  const Process* process = definitions.process_of(thread);
  const bool is_later = process != nullptr && process->pid != facts.tid;
  return facts.of_kernel() || is_later || definitions.joined_running(thread) ||
                 definitions.life_begin_ns(thread) != INT64_MIN
             ? stack_of(thread)
             : entries_[thread].stack.get();
}

// Adds losses that the threads could not record themselves. It is not known when they
// came.
void Replay::add_residual_loss(const Record& record, const arctrace_lost_body& lost) {
  ThreadStack* stack =
      (lost.flags & ARCTRACE_LOST_SESSION) != 0 ? nullptr : stack_of(record.thread);
  if (stack != nullptr && !entries_[record.thread].hidden) {
    stack->add_residual_loss(record, lost);
  } else if (wants_thread_ && record.thread != kNoIndex) {
    return;
  }
  session_point(record);
}

// Ends the kernel's frames of events that are not recorded any more, because the records
// that would end them are missing.
void Replay::leave_kernel_frames(const Record& record, uint32_t gate) {
  if ((gate & ARCTRACE_GATE_KERNEL) == 0) return;
  constexpr uint32_t kMakeFrames = ARCTRACE_KERNEL_SYSCALLS | ARCTRACE_KERNEL_CONTENTION;
  const uint32_t events = kernel_events_of(gate) & kMakeFrames;
  const bool is_dropped = (kernel_frames_ & ~events) != 0;
  kernel_frames_ = events;
  if (!is_dropped) return;
  for (Entry& entry : entries_) {
    if (entry.stack != nullptr) entry.stack->leave_kernel_frames(record.time_ns);
  }
}

void Replay::enabled(const Record& record) {
  const uint32_t gate = load_part_untrusted<arctrace_enabled_body>(record.body).gate;
  leave_kernel_frames(record, gate);
  const bool is_on = (gate & ARCTRACE_GATE_FUNCTIONS) != 0;
  std::string filter(is_on ? enabled_filter_untrusted(record.body) : std::string_view());
  if (const ThreadFilter threads(filter, 0, 0); !threads.by_pid && !threads.by_tid) {
    filter.clear();
  }
  std::vector<OffStretch>& off = state_.off;
  const bool was_on = off.empty() || off.back().to_ns != INT64_MAX;
  const bool is_all_on = is_on && filter.empty();
  const bool goes_on = was_on ? is_all_on : !is_all_on && off.back().filter == filter;
  if (!goes_on) {
    if (!was_on) off.back().to_ns = record.time_ns;
    if (!is_all_on) off.push_back({record.time_ns, INT64_MAX, std::move(filter)});
  }
  session_point(record);
}

void Replay::session_point(const Record& record) {
  const ReplayFilter& filter = state_.filter;
  if (state_.listener == nullptr || record.time_ns < filter.from_ns ||
      record.time_ns >= filter.until_ns) {
    return;
  }
  state_.listener->point({PointInfo::Kind::kRecord, record.thread, kUnknownFunction, 0,
                          record.time_ns, &record});
}

// Whether the thread has a lifetime without any records: the begin of its program is
// known, or, with the kernel's records, when its process joined.
bool Replay::has_life(ThreadIndex thread) const {
  return state_.definitions.life_begin_ns(thread) != INT64_MIN ||
         (state_.has_dispatches && state_.definitions.joined_running(thread));
}

// Adds the threads of programs without records: their functions are not recorded, or they
// call none.
void Replay::add_silent_programs() {
  for (ThreadIndex i = 0; i < entries_.size(); ++i) {
    if (entries_[i].known || !has_life(i)) continue;
    ThreadStack* stack = stack_of(i);
    if (stack != nullptr) stack->begin_life(last_ns_);
  }
}

std::optional<int32_t> Replay::wait_status(ProcessIndex process) const {
  const Process* facts = state_.definitions.process(process);
  if (facts != nullptr && facts->wait_status.has_value()) return facts->wait_status;
  const auto found = state_.exit_statuses.find(process);
  if (found == state_.exit_statuses.end()) return std::nullopt;
  return found->second;
}

void Replay::finish() {
  note_forks_until(INT64_MAX);
  enter_waiting_until(INT64_MAX);
  interrupts_.finish(last_ns_);
  add_silent_programs();
  for (size_t i = 0; i < entries_.size(); ++i) {
    ThreadStack* stack = entries_[i].stack.get();
    if (stack == nullptr || entries_[i].hidden) continue;
    stack->finish(std::min(last_ns_, state_.definitions.known_until_ns()));
    if (!stack->in_report()) continue;
    threads_.push_back({static_cast<ThreadIndex>(i), stack->root(), stack->start_ns(),
                        stack->stop_ns(), stack->end_within_ns()});
  }
}

}  // namespace arctrace::reader
