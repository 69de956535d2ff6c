#include "reader/streams/schedule_log.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace arctrace::reader {
namespace {

// A running thread's piece ends at the latest when it has so many paths, or is so long.
constexpr size_t kPiecePathsMax = 256;
constexpr int64_t kRunningMax_ns = 1'000'000;

// The head of a piece in the file; its paths follow.
struct Head {
  int64_t start_ns, stop_ns;
  uint64_t previous;
  uint32_t previous_size;
  uint32_t task_state;
  ThreadIndex waker;
  uint32_t context;
  uint8_t state, preempted, interrupt, interrupted;
  uint32_t path_count;
};

}  // namespace

ScheduleLog::Log& ScheduleLog::log_of(ThreadIndex thread) {
  if (thread >= threads_.size()) threads_.resize(size_t{thread} + 1);
  return threads_[thread];
}

void ScheduleLog::time_passed(const PathTime& time) {
  Log& log = log_of(time.thread);
  if (log.paths.empty()) {
    log.state = {};
    log.state.thread = time.thread;
    log.state.state = time.state;
    log.state.start_ns = time.start_ns;
  }
  const auto found =
      std::find_if(log.paths.rbegin(), log.paths.rend(),
                   [&](const PathShare& share) { return share.node == time.node; });
  PathShare& share = found == log.paths.rend()
                         ? log.paths.emplace_back(PathShare{time.node, 0})
                         : *found;
  share.time_ns +=
      static_cast<uint64_t>(time.stop_ns) - static_cast<uint64_t>(time.start_ns);
  log.state.stop_ns = time.stop_ns;
  if (time.state != RunState::kRunning) return;
  if (log.paths.size() >= kPiecePathsMax ||
      time.stop_ns - log.state.start_ns >= kRunningMax_ns) {
    add(log);
  }
}

void ScheduleLog::state_ended(const StateInfo& state) {
  Log& log = log_of(state.thread);
  if (!log.paths.empty()) {
    log.state.state = state.state;
    log.state.preempted = state.preempted;
    log.state.interrupted = state.interrupted;
    log.state.task_state = state.task_state;
    log.state.waker = state.waker;
    add(log);
  }
  if (state.waker.thread != kNoIndex && !state.waker.interrupt) cut(state.waker.thread);
}

void ScheduleLog::thread_made(const ThreadMade& made) {
  if (made.parent != made.child) made_.try_emplace(made.child, made);
  cut(made.parent);
}

// The piece of a waiting thread is not cut: what ends the wait is not known yet.
void ScheduleLog::cut(ThreadIndex thread) {
  if (thread >= threads_.size()) return;
  Log& log = threads_[thread];
  if (!log.paths.empty() && log.state.state == RunState::kRunning) add(log);
}

void ScheduleLog::add(Log& log) {
  const StateInfo& state = log.state;
  const Head head{state.start_ns,
                  state.stop_ns,
                  log.last,
                  log.last_size,
                  state.task_state,
                  state.waker.thread,
                  state.waker.context,
                  static_cast<uint8_t>(state.state),
                  static_cast<uint8_t>(state.preempted ? 1 : 0),
                  static_cast<uint8_t>(state.waker.interrupt ? 1 : 0),
                  static_cast<uint8_t>(state.interrupted ? 1 : 0),
                  static_cast<uint32_t>(log.paths.size())};
  std::string bytes(sizeof head + log.paths.size() * sizeof(PathShare), '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, log.paths.data(),
              log.paths.size() * sizeof(PathShare));
  log.last = spool_.add(bytes);
  log.last_size = static_cast<uint32_t>(bytes.size());
  log.paths.clear();
}

std::optional<SchedulePiece> ScheduleLog::last(ThreadIndex thread) {
  if (thread >= threads_.size()) return std::nullopt;
  return read(thread, threads_[thread].last, threads_[thread].last_size);
}

std::optional<SchedulePiece> ScheduleLog::before(const SchedulePiece& piece) {
  return read(piece.state.thread, piece.previous, piece.previous_size);
}

std::optional<SchedulePiece> ScheduleLog::read(ThreadIndex thread, uint64_t offset,
                                               uint32_t size) {
  if (size == 0) return std::nullopt;
  const std::string bytes = spool_.read(offset, size);
  if (bytes.size() != size || size < sizeof(Head)) return std::nullopt;
  Head head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  SchedulePiece piece;
  piece.state.thread = thread;
  piece.state.start_ns = head.start_ns;
  piece.state.stop_ns = head.stop_ns;
  piece.state.state = static_cast<RunState>(head.state);
  piece.state.preempted = head.preempted != 0;
  piece.state.interrupted = head.interrupted != 0;
  piece.state.task_state = head.task_state;
  piece.state.waker.thread = head.waker;
  piece.state.waker.context = head.context;
  piece.state.waker.interrupt = head.interrupt != 0;
  piece.previous = head.previous;
  piece.previous_size = head.previous_size;
  piece.paths.resize(head.path_count);
  std::memcpy(piece.paths.data(), bytes.data() + sizeof head,
              piece.paths.size() * sizeof(PathShare));
  return piece;
}

std::optional<ThreadMade> ScheduleLog::made(ThreadIndex thread) const {
  const auto found = made_.find(thread);
  if (found == made_.end()) return std::nullopt;
  return found->second;
}

}  // namespace arctrace::reader
