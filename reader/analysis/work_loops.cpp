#include "reader/analysis/work_loops.hpp"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reader/analysis/function_kinds.hpp"
#include "reader/analysis/path_state.hpp"

namespace arctrace::reader {
namespace {

// A call that returned so often before it waited for the first time does not ask for
// work: its thread fills or empties a pipe whose other end is slower.
constexpr uint64_t kCallsBeforeMax = 3;
// A thread that was given something so often by threads to which it gives work waits for
// them.
constexpr uint64_t kAnswersMin = 5;
// The kernel's TASK_* bits. Waits for disks and for the kernel itself are not
// interruptible. A tracer stops a thread, as when arctrace joins it, which is no wait of
// the program's.
constexpr uint32_t kInterruptible = 1;
constexpr uint32_t kStopped = 4 | 8;

// A thread that waits for a lock has work, and waits for another thread to do its own.
bool takes_lock(const Function& function) {
  const std::optional<LockUse> lock = lock_use(function);
  return lock.has_value() && (lock->action == LockAction::kAcquire ||
                              lock->action == LockAction::kAcquireShared);
}

// Whoever waits for the end of a thread or of a process wants its result, and is given no
// work.
bool waits_for_end(const Function& function) {
  const std::optional<FunctionKind> kind = function_kind(function);
  return kind == FunctionKind::kThread || kind == FunctionKind::kProcess;
}

// The network of the own machine counts, too: there the sender raises the soft interrupt
// itself.
bool is_from_network(const Waker& waker) {
  const uint32_t vector = ARCTRACE_WAKING_VECTOR(waker.context);
  return vector == ARCTRACE_SOFTIRQ_NET_SEND + 1 ||
         vector == ARCTRACE_SOFTIRQ_NET_RECEIVE + 1;
}

bool sends_or_receives(const Function& function) {
  const std::optional<FunctionKind> kind = function_kind(function);
  return kind == FunctionKind::kIo || kind == FunctionKind::kNetwork;
}

}  // namespace

struct WorkLoops::Candidate {
  ThreadIndex thread;
  NodeIndex node;
  const Place* place;
  ProcessIndex process;
  std::vector<FunctionId> path;
  bool is_found = false, is_from_outside = false;

  bool is_like(const Candidate& other) const {
    return process == other.process && path == other.path;
  }
};

void WorkLoops::begin(const Replay& replay, const Session* session) {
  replay_ = &replay;
  const Definitions& definitions = replay.definitions();
  // Processes without records of their own count, too: they were not traced, but are
  // there.
  absl::flat_hash_set<uint32_t> pids;
  for (const Process& process : definitions.processes()) pids.insert(process.pid);
  if (session != nullptr) pids.insert(session->creator_pid);
  for (const Thread& thread : definitions.threads()) {
    inside_.push_back(!thread.of_kernel() || pids.contains(thread.tgid));
  }
}

uint64_t WorkLoops::frame_opened(const FrameInfo& frame) {
  if (frame.thread >= threads_.size()) threads_.resize(frame.thread + 1);
  Waits& thread = threads_[frame.thread];
  if (frame.function >= thread.called.size()) thread.called.resize(frame.function + 1);
  Called& called = thread.called[frame.function];
  if (called.order == 0) {
    called.order = ++thread.functions;
    called.is_io = sends_or_receives(replay_->functions()[frame.function]);
    called.after = thread.last_io;
  }
  if (called.is_io) thread.last_io = frame.function;
  if (frame.node == thread.first_place) ++thread.rounds;
  if (called.last_round != thread.rounds) {
    called.last_round = thread.rounds;
    ++called.rounds;
  }
  if (called.last == thread.works) return 0;
  called.last = thread.works;
  if (thread.works == 0) {
    called.is_first = true;
  } else {
    ++called.stretches;
  }
  return 0;
}

void WorkLoops::thread_made(const ThreadMade& made) {
  if (made.parent == made.child) return;
  made_.try_emplace(made.child, Made{made.parent, made.time_ns});
}

bool WorkLoops::is_from_outside(const StateInfo& state) const {
  const Waker& waker = state.waker;
  if (is_woken_by_thread(waker)) {
    return waker.thread < inside_.size() && !inside_[waker.thread];
  }
  return wait_state(*replay_, state, kNoNode) == PathState::kNetwork;
}

void WorkLoops::state_ended(const StateInfo& state) {
  if (state.state == RunState::kRunning) {
    const Process* process = replay_->definitions().process_of(state.thread);
    if (process == nullptr || state.start_ns < process->ended_ns()) return;
    if (state.thread >= threads_.size()) threads_.resize(state.thread + 1);
    threads_[state.thread].taken_down_ns +=
        static_cast<uint64_t>(state.stop_ns) - static_cast<uint64_t>(state.start_ns);
    return;
  }
  if (state.state != RunState::kBlocked || state.node == kNoNode ||
      state.task_state == ARCTRACE_SWITCH_UNKNOWN || (state.task_state & kStopped) != 0) {
    return;
  }
  if (state.thread >= threads_.size()) threads_.resize(state.thread + 1);
  Waits& thread = threads_[state.thread];
  Place& place = thread.places[state.node];
  if (place.waits == 0) place.calls_before = replay_->tree()[state.node].calls;
  if (place.has_work) {
    if (place.work == nullptr) place.work = std::make_unique<DurationHistogram>();
    place.work->add(static_cast<uint64_t>(state.start_ns) -
                    static_cast<uint64_t>(place.last_ns));
  }
  const uint64_t time_ns =
      static_cast<uint64_t>(state.stop_ns) - static_cast<uint64_t>(state.start_ns);
  ++place.waits;
  place.wait_ns += time_ns;
  place.has_work = false;
  if ((state.task_state & kInterruptible) == 0) return;
  if (is_from_outside(state)) {
    ++place.from_outside;
    if (is_from_network(state.waker)) {
      ++place.from_network;
      if (thread.first_place == kNoNode) thread.first_place = state.node;
    }
    ++thread.works;
    place.has_work = true;
  } else if (is_woken_by_thread(state.waker)) {
    Given& given = place.by_thread[state.waker.thread];
    ++given.waits;
    given.time_ns += time_ns;
    place.has_work = true;
  } else if (wait_state(*replay_, state, kNoNode) == PathState::kTimer) {
    ++place.timers;
  }
  if (!place.has_work) return;
  place.first_ns = std::min(place.first_ns, state.stop_ns);
  place.last_ns = state.stop_ns;
}

// Whether the thread is a client. A client sends before it first receives, and does not
// send any more after it has received the last answer, unless it did not have to wait for
// that. A server receives first. A thread that has connected itself, and was never
// connected to, asks.
bool WorkLoops::asked_first(const Waits& thread, FunctionId waits_in) const {
  std::optional<size_t> sent;
  size_t received = 0;
  bool has_connected = false, has_accepted = false;
  // 0: the thread was in the function before its first record.
  const size_t waits_since =
      waits_in < thread.called.size() ? thread.called[waits_in].order : 0;
  for (FunctionId id = 0; id < thread.called.size(); ++id) {
    const Called& called = thread.called[id];
    const std::string& name = replay_->functions()[id].name;
    if (called.order != 0 && name == "connect" && called.order < waits_since) {
      has_connected = true;
    }
    if (called.order != 0 && (name == "accept" || name == "accept4")) has_accepted = true;
    const bool is_usual = called.stretches * 10 >= thread.works * 9;
    if (!is_usual || !sends_or_receives(replay_->functions()[id])) continue;
    if (id == waits_in || called.last == thread.works) {
      received = std::max(received, called.order);
    } else if (called.is_first) {
      sent = std::min(sent.value_or(called.order), called.order);
    }
  }
  return (has_connected && !has_accepted) || (sent.has_value() && *sent < received);
}

bool WorkLoops::can_be_loop(const Waits& thread, NodeIndex node,
                            const Place& place) const {
  const CallTree& tree = replay_->tree();
  if (tree[node].parent == kNoNode || tree[node].calls < place.waits / 2) return false;
  uint64_t given = place.from_outside;
  for (const auto& [giver, by] : place.by_thread) given += by.waits;
  if (given * 2 < place.waits - place.timers) return false;
  return (given >= kWaitsMin && place.calls_before <= kCallsBeforeMax) ||
         is_busy_loop(thread, node, place);
}

// A thread that always finds work hardly waits for it. It is known by what it does in
// between: it had to wait for the network once, and has called the same function again
// and again since, to find out what it is to do, which it then did by two calls of
// others, one to receive and one to send. It may have asked by neither just before its
// first such call. A thread that empties a pipe, or checks one file after another, has
// not waited for the network; and without its calls for I/O nobody knows whether it asked
// first.
bool WorkLoops::is_busy_loop(const Waits& thread, NodeIndex node,
                             const Place& place) const {
  if (node != thread.first_place || thread.rounds < kRoundsMin) return false;
  if (place.from_network * 2 < place.from_outside) return false;
  const std::vector<FunctionId> path = path_of(*replay_, node);
  if (path.empty() || path.front() >= thread.called.size()) return false;
  const FunctionId waits_in = path.front();
  const FunctionId may_ask = thread.called[waits_in].after;
  size_t usual = 0;
  for (FunctionId id = 0; id < thread.called.size(); ++id) {
    const Called& called = thread.called[id];
    if (id == waits_in || id == may_ask || !called.is_io) continue;
    if (called.rounds * 2 >= thread.rounds) ++usual;
  }
  return usual >= 2;
}

// Returns each thread's place of the longest waits, of the places that can be loops.
std::vector<WorkLoops::Candidate> WorkLoops::candidates() const {
  std::vector<Candidate> all;
  for (const ThreadTree& tree : replay_->threads()) {
    if (tree.thread >= threads_.size()) continue;
    const Waits& thread = threads_[tree.thread];
    const std::pair<const NodeIndex, Place>* best = nullptr;
    for (const auto& entry : thread.places) {
      if ((best == nullptr || entry.second.wait_ns > best->second.wait_ns) &&
          can_be_loop(thread, entry.first, entry.second)) {
        best = &entry;
      }
    }
    if (best == nullptr) continue;
    std::vector<FunctionId> path = path_of(*replay_, best->first);
    if (path.empty()) continue;
    const Function& waits_in = replay_->functions()[path.front()];
    if (takes_lock(waits_in) || waits_for_end(waits_in)) continue;
    const bool is_from_outside =
        best->second.from_outside * 2 >= best->second.waits - best->second.timers;
    if (is_from_outside && asked_first(thread, path.front())) continue;
    all.push_back({tree.thread, best->first, &best->second,
                   replay_->definitions().threads()[tree.thread].process, std::move(path),
                   is_from_outside, is_from_outside});
  }
  return all;
}

// Whether the thread waits for what the loop and those like it do: it gets an answer to
// much of what it gives them, or waits for that about as long as they wait for it. Then
// the thread and the loop take turns. Waits for locks do not count: the queue has one.
bool WorkLoops::waits_for(ThreadIndex thread, const Candidate& loop,
                          const std::vector<Candidate>& all) const {
  if (thread >= threads_.size()) return false;
  uint64_t like = 0, like_ns = 0;
  Given gives, gets;
  for (const Candidate& other : all) {
    if (!other.is_like(loop)) continue;
    ++like;
    like_ns += other.place->wait_ns;
    const auto by = other.place->by_thread.find(thread);
    if (by != other.place->by_thread.end()) gives.waits += by->second.waits;
  }
  for (const auto& [node, place] : threads_[thread].places) {
    if (takes_lock(replay_->functions()[replay_->tree()[node].function])) continue;
    Given answers;
    for (const Candidate& other : all) {
      const auto by = place.by_thread.find(other.thread);
      if (by == place.by_thread.end() || !other.is_like(loop)) continue;
      answers.waits += by->second.waits;
      answers.time_ns += by->second.time_ns;
    }
    if (answers.waits < kAnswersMin) continue;
    gets.waits += answers.waits;
    gets.time_ns += answers.time_ns;
  }
  // If the thread computes meanwhile, or waits for a CPU to do so, the loops wait for
  // what it computes.
  for (const ThreadTree& tree : replay_->threads()) {
    if (tree.thread != thread) continue;
    const uint64_t ready_ns = replay_->tree().cpu_total(tree.root).ready_ns;
    gets.time_ns += (cpu_after_start(*replay_, tree.root) + ready_ns) / 2;
  }
  return gets.waits * 8 > gives.waits || (like != 0 && gets.time_ns * 4 > like_ns / like);
}

// Whether a loop gets its work from threads that are not like it: from threads that get
// theirs from outside, or from threads of its process.
bool WorkLoops::gets_work_from(const Candidate& loop, const std::vector<Candidate>& all,
                               bool from_outside) const {
  const Definitions& definitions = replay_->definitions();
  uint64_t waits = 0, from_such = 0;
  for (const auto& [giver, by] : loop.place->by_thread) {
    const ThreadIndex thread = giver;
    waits += by.waits;
    const auto other = std::find_if(all.begin(), all.end(), [&](const Candidate& one) {
      return one.thread == thread;
    });
    const bool is_loop = other != all.end();
    if (is_loop && other->is_like(loop)) continue;
    if (from_outside) {
      if (is_loop && other->is_from_outside) from_such += by.waits;
    } else if (definitions.threads()[thread].process == loop.process &&
               !waits_for(thread, loop, all)) {
      from_such += by.waits;
    }
  }
  return waits != 0 && from_such * 4 >= waits * 3;
}

Serving WorkLoops::find() const {
  Serving serving;
  if (replay_ == nullptr) return serving;
  std::vector<Candidate> all = candidates();
  for (const bool from_outside : {true, false}) {
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (Candidate& loop : all) {
        if (loop.is_found || !gets_work_from(loop, all, from_outside)) continue;
        loop.is_found = true;
        loop.is_from_outside = from_outside;
        is_changed = true;
      }
    }
  }
  for (const Candidate& loop : all) {
    if (!loop.is_found) continue;
    serving.loops.push_back({loop.thread, loop.node, replay_->tree()[loop.node].calls,
                             loop.place->waits, loop.place->wait_ns, loop.is_from_outside,
                             loop.place->first_ns, loop.place->last_ns,
                             loop.place->work.get()});
  }
  std::stable_sort(
      serving.loops.begin(), serving.loops.end(),
      [](const WorkLoop& a, const WorkLoop& b) { return a.waits > b.waits; });
  serving.is_server = is_server(serving.loops);
  if (serving.is_server) serving.sleepers = sleepers(serving.loops);
  return serving;
}

}  // namespace arctrace::reader
