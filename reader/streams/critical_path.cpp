#include "reader/streams/critical_path.hpp"

#include <absl/numeric/int128.h>

#include <algorithm>
#include <utility>

namespace arctrace::reader {
namespace {

// The walk goes from thread to thread so often without going back in time. More is a
// contradiction in the trace.
constexpr uint32_t kJumpsMax = 1000;

NodeIndex last_node(const SchedulePiece& piece) {
  return piece.paths.empty() ? kNoNode : piece.paths.back().node;
}

class Walk {
 public:
  Walk(ScheduleLog& log, const Replay& replay, const PathEnd& end)
      : log_(log), replay_(replay), positions_(log.thread_count()) {
    path_.end = end;
  }

  CriticalPath run() {
    thread_ = path_.end.thread;
    now_ = path_.end.stop_ns;
    while (now_ > path_.end.start_ns) step();
    return std::move(path_);
  }

 private:
  // The place up to which a thread's log was read.
  struct Position {
    bool is_begun = false;
    std::optional<SchedulePiece> piece;
  };

  // Returns the last piece of the thread that begins before now; null: there is none.
  const SchedulePiece* piece_of(ThreadIndex thread) {
    if (thread >= positions_.size()) return nullptr;
    Position& at = positions_[thread];
    if (!at.is_begun) at.piece = log_.last(thread);
    at.is_begun = true;
    while (at.piece.has_value() && at.piece->state.start_ns >= now_) {
      at.piece = log_.before(*at.piece);
    }
    return at.piece.has_value() ? &*at.piece : nullptr;
  }

  // Adds the time since `since_ns` to the thread's part; the walk goes on there.
  void take(int64_t since_ns, NodeIndex node, PathState state) {
    since_ns = std::max(since_ns, path_.end.start_ns);
    if (since_ns >= now_) return;
    path_.sums[{thread_, node, state}].add(
        static_cast<uint64_t>(now_) - static_cast<uint64_t>(since_ns), since_ns, now_);
    go_back_to(since_ns);
  }

  void go_back_to(int64_t time_ns) {
    std::vector<PathPiece>& pieces = path_.pieces;
    if (!pieces.empty() && pieces.back().thread == thread_) {
      pieces.back().start_ns = time_ns;
    } else {
      pieces.push_back({thread_, time_ns, now_});
    }
    now_ = time_ns;
    jumps_ = 0;
  }

  // Adds the time of a piece in the same way, divided like that of the whole piece.
  void take_piece(const SchedulePiece& piece, int64_t since_ns, PathState state) {
    const StateInfo& whole = piece.state;
    since_ns = std::max({since_ns, whole.start_ns, path_.end.start_ns});
    if (since_ns >= now_) return;
    const uint64_t all_ns =
        static_cast<uint64_t>(whole.stop_ns) - static_cast<uint64_t>(whole.start_ns);
    uint64_t left_ns = static_cast<uint64_t>(now_) - static_cast<uint64_t>(since_ns);
    const uint64_t part_ns = left_ns;
    for (const PathShare& share : piece.paths) {
      const bool is_last = &share == &piece.paths.back();
      const auto fair_ns =
          static_cast<uint64_t>(absl::uint128(share.time_ns) * part_ns / all_ns);
      const uint64_t time_ns = is_last ? left_ns : std::min(left_ns, fair_ns);
      const PathState what = is_own_work(share.node) ? PathState::kRecorder : state;
      if (time_ns != 0) {
        path_.sums[{thread_, share.node, what}].add(time_ns, since_ns, now_);
      }
      left_ns -= time_ns;
    }
    go_back_to(since_ns);
  }

  // Whether the tracer works at the end of this path. Nobody waits for what it waits for.
  bool is_own_work(NodeIndex node) const {
    const FunctionId own_work = replay_.functions().own_work();
    return node != kNoNode && own_work != kRootFunction &&
           replay_.tree()[node].function == own_work;
  }

  bool go_to(ThreadIndex thread) {
    if (thread == thread_ || ++jumps_ > kJumpsMax) return false;
    thread_ = thread;
    return true;
  }

  // Returns the thread that had this number before, and executed this thread's program.
  ThreadIndex program_before(ThreadIndex thread) const {
    const Definitions& definitions = replay_.definitions();
    const Process* process = definitions.process_of(thread);
    if (process == nullptr || process->pid != definitions.threads()[thread].tid) {
      return kNoIndex;
    }
    ThreadIndex found = kNoIndex;
    for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
      const Thread& other = definitions.threads()[i];
      const Process* of = definitions.process_of(i);
      if (i == thread || of == nullptr || of == process || other.of_kernel() ||
          of->pid != process->pid || of->pid_namespace != process->pid_namespace ||
          other.tid != of->pid || of->start_ns >= process->start_ns) {
        continue;
      }
      if (found == kNoIndex || other.start_ns > definitions.threads()[found].start_ns) {
        found = i;
      }
    }
    return found;
  }

  std::optional<ThreadMade> made(ThreadIndex thread) const {
    if (const auto known = log_.made(thread)) return known;
    // Without the kernel's records, a fork child begins where its parent's thread called
    // fork.
    const Definitions& definitions = replay_.definitions();
    const Process* process = definitions.process_of(thread);
    if (process == nullptr || process->forker == 0 ||
        process->pid != definitions.threads()[thread].tid) {
      return std::nullopt;
    }
    const ThreadIndex forker = definitions.find_thread(process->forker);
    if (forker == kNoIndex || forker == thread) return std::nullopt;
    return ThreadMade{forker, thread, definitions.threads()[thread].start_ns};
  }

  void step() {
    const std::optional<ThreadMade> birth = made(thread_);
    if (birth.has_value() && birth->time_ns >= now_ && go_to(birth->parent)) return;
    const int64_t low_ns = birth.has_value() ? birth->time_ns : path_.end.start_ns;
    const SchedulePiece* piece = piece_of(thread_);
    if (piece == nullptr) {
      before_first(birth);
      return;
    }
    const StateInfo& state = piece->state;
    if (state.stop_ns < now_) {
      take(std::max(state.stop_ns, low_ns), kNoNode, PathState::kNotKnown);
      return;
    }
    switch (state.state) {
      case RunState::kNotKnown:
        take_piece(*piece, low_ns, PathState::kNotKnown);
        return;
      case RunState::kRunning:
        take_piece(*piece, low_ns, PathState::kRunning);
        return;
      case RunState::kReady:
        take_piece(*piece, low_ns, PathState::kPreempted);
        return;
      case RunState::kBlocked:
        break;
    }
    const bool is_whole = state.stop_ns == now_;
    if (is_whole && !is_own_work(last_node(*piece)) && is_woken_by_thread(state.waker) &&
        runs(state.waker.thread) && go_to(state.waker.thread)) {
      return;
    }
    take_piece(
        *piece, low_ns,
        is_whole ? wait_state(replay_, state, last_node(*piece)) : PathState::kNotKnown);
  }

  // Whether the thread's log does not contradict that it runs now, or that an interrupt
  // which it raised is served. The trace does not tell what a thread of a process did
  // that is not recorded.
  bool runs(ThreadIndex thread) {
    if (replay_.definitions().threads()[thread].is_foreign) return false;
    const SchedulePiece* piece = piece_of(thread);
    if (piece == nullptr) return made(thread).has_value();
    return piece->state.stop_ns < now_ || piece->state.state == RunState::kRunning ||
           piece->state.interrupted;
  }

  // Handles the time before the thread's first piece.
  void before_first(const std::optional<ThreadMade>& birth) {
    if (birth.has_value() && birth->time_ns < now_) {
      if (birth->runs_in_parent && go_to(birth->parent)) return;
      take(birth->time_ns, kNoNode, PathState::kNotKnown);
      return;
    }
    const ThreadIndex before = program_before(thread_);
    if (before != kNoIndex && go_to(before)) return;
    take(path_.end.start_ns, kNoNode, PathState::kNotKnown);
  }

  ScheduleLog& log_;
  const Replay& replay_;
  std::vector<Position> positions_;  // by ThreadIndex
  CriticalPath path_;
  ThreadIndex thread_ = kNoIndex;
  int64_t now_ = 0;
  uint32_t jumps_ = 0;
};

}  // namespace

void PathSum::add(uint64_t more_ns, int64_t from_ns, int64_t until_ns) {
  time_ns += more_ns;
  if (more_ns <= longest_ns) return;
  longest_ns = more_ns;
  start_ns = from_ns;
  stop_ns = until_ns;
}

std::array<uint64_t, kPathStates> CriticalPath::state_sums() const {
  std::array<uint64_t, kPathStates> all{};
  for (const auto& [key, sum] : sums) {
    all[static_cast<size_t>(std::get<PathState>(key))] += sum.time_ns;
  }
  return all;
}

std::optional<PathEnd> whole_stretch(ScheduleLog& log, const Replay& replay) {
  PathEnd end;
  // The best thread ended last; of several, one that ran, and the one that began to do so
  // last.
  std::tuple<int64_t, bool, int64_t> best;
  for (const ThreadTree& tree : replay.threads()) {
    if (replay.definitions().threads()[tree.thread].is_foreign) continue;
    const std::optional<SchedulePiece> piece = log.last(tree.thread);
    if (!piece.has_value()) continue;
    const std::tuple<int64_t, bool, int64_t> rank = {
        piece->state.stop_ns, piece->state.state == RunState::kRunning,
        piece->state.start_ns};
    if (end.thread == kNoIndex || tree.start_ns < end.start_ns) {
      end.start_ns = tree.start_ns;
    }
    if (end.thread == kNoIndex || rank > best) {
      best = rank;
      end.thread = tree.thread;
      end.stop_ns = piece->state.stop_ns;
    }
  }
  if (end.thread == kNoIndex) return std::nullopt;
  return end;
}

CriticalPath critical_path(ScheduleLog& log, const Replay& replay, const PathEnd& end) {
  return Walk(log, replay, end).run();
}

}  // namespace arctrace::reader
