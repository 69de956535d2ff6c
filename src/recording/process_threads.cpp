#include "src/recording/process_threads.hpp"

#include <algorithm>
#include <utility>

#include "src/buffer/clock.hpp"

namespace arctrace::recording {

ProcessThreads::ProcessThreads(pid_t pid, uint32_t clock)
    : pid_(pid), clock_(clock), all_(read_joined_threads(pid, read_ticks(clock))) {}

void ProcessThreads::look() {
  constexpr int kLooksMax = 2;
  constexpr auto kWhile = std::chrono::milliseconds(50);
  const auto moment = std::chrono::steady_clock::now();
  if (looks_ == kLooksMax || (looks_ != 0 && moment - first_look_ < kWhile)) return;
  if (looks_++ == 0) first_look_ = moment;
  std::vector<Waiting> now;
  const uint64_t ticks = read_ticks(clock_);
  for (const WaitingThread& thread : find_waiting_threads(pid_)) {
    const auto same =
        std::find_if(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& before) { return before.thread == thread; });
    now.push_back({thread, same == waiting_.end() ? ticks : same->since_ticks});
  }
  waiting_ = std::move(now);
}

JoinedThreads ProcessThreads::finish(bool with_functions) {
  if (!with_functions) return std::move(all_);
  std::vector<WaitingThread> waiting;
  waiting.reserve(waiting_.size());
  for (const Waiting& one : waiting_) waiting.push_back(one.thread);
  for (WaitingStack& stack : unwind_waiting_threads(pid_, waiting)) {
    const auto since =
        std::find_if(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& one) { return one.thread.tid == stack.tid; });
    for (JoinedThreads::Thread& thread : all_.threads) {
      if (thread.task != stack.tid) continue;
      thread.waits_in = std::move(stack.functions);
      thread.is_whole = stack.is_whole;
      thread.waits_from_ticks = since->since_ticks;
    }
  }
  return std::move(all_);
}

}  // namespace arctrace::recording
