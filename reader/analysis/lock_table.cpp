#include "reader/analysis/lock_table.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <iterator>

#include "reader/trace/call_args.hpp"

namespace arctrace::reader {
namespace {

using Does = LockFunction::Does;

// Whether the span was the longest so far.
bool keep_longer(LockSpan& longest, const LockSpan& span) {
  if (longest.thread != kNoIndex && span.duration_ns <= longest.duration_ns) return false;
  longest = span;
  return true;
}

bool is_acquire(const LockFunction& function) {
  return function.does == Does::kAcquire || function.does == Does::kAcquireShared;
}

}  // namespace

const LockFunction* LockTable::function_of(FunctionId function) {
  if (function >= known_.size()) known_.resize(function + 1);
  auto& [is_known, found] = known_[function];
  if (!is_known) found = lock_function((*functions_)[function]);
  is_known = true;
  return found.has_value() ? &*found : nullptr;
}

uint64_t LockTable::frame_opened(const FrameInfo& frame) {
  std::vector<FunctionId>& stack = stacks_[{frame.thread, frame.coroutine}];
  stack.resize(frame.depth - 1);
  const LockFunction* function = function_of(frame.function);
  uint64_t token = 0;
  if (function != nullptr) {
    token = next_token_++;
    Call& call = calls_[token];
    call.function = *function;
    call.start_ns = frame.start_ns;
    call.path = stack;
  }
  stack.push_back(frame.function);
  return token;
}

void LockTable::args(const ArgsInfo& args) {
  const auto found = calls_.find(args.token);
  if (args.token == 0 || found == calls_.end()) return;
  Call& call = found->second;
  const ProcessIndex process = definitions_.threads()[args.thread].process;
  for (const CallArg& arg : decode_args(args.record->body, "")) {
    if (!is_number_kind(arg.kind)) continue;
    if (args.record->type == ARCTRACE_TYPE_RESULT) {
      if (arg.index == 0 && arg.number != 0) call.failed = true;
    } else if (arg.index == 1) {
      call.lock = LockId{process, arg.number};
    } else if (arg.index == 2 && call.function.does == Does::kWait &&
               call.function.kind == LockKind::kCondition) {
      call.mutex = LockId{process, arg.number};
    }
  }
  if (args.record->type == ARCTRACE_TYPE_RESULT || !call.lock.has_value()) return;
  if (is_acquire(call.function)) wait_for(*call.lock, args.thread, call);
  // What the call gives up is free from its beginning on.
  if (call.function.does == Does::kRelease) {
    release(*call.lock, args.thread, args.time_ns);
  } else if (call.mutex.has_value()) {
    release(*call.mutex, args.thread, args.time_ns);
  }
}

void LockTable::frame_closed(const FrameInfo& frame, uint64_t token, bool /*shown*/) {
  const auto found = calls_.find(token);
  if (token == 0 || found == calls_.end()) return;
  const Call call = std::move(found->second);
  calls_.erase(found);
  if (!call.lock.has_value()) {
    ++without_lock_;
    return;
  }
  LockSums& sums = locks_[*call.lock];
  sums.kind = call.function.kind;
  if ((frame.flags & kFrameOpen) != 0) {
    if (is_acquire(call.function))
      waiters_[frame.thread] = {frame.thread, *call.lock, kNoIndex};
    return;
  }
  if (call.function.does == Does::kWake) ++sums.wakes;
  if (is_acquire(call.function)) {
    std::vector<LockShare> holders = end_waiting(*call.lock, frame.thread);
    if (!call.failed) acquire(*call.lock, frame, call, true, std::move(holders));
  }
  if (call.function.does == Does::kWait) {
    ++sums.acquired;
    note_wait(sums, frame, call);
    if (call.mutex.has_value()) acquire(*call.mutex, frame, call, false, {});
  }
}

void LockTable::wait_for(const LockId& lock, ThreadIndex thread, const Call& call) {
  owners_[{lock.process, lock.address}].waiting.push_back(
      {thread, call.start_ns, call.function.does == Does::kAcquireShared, call.path, {}});
}

// Who had the lock while the thread waited for it.
std::vector<LockShare> LockTable::end_waiting(const LockId& lock, ThreadIndex thread) {
  std::vector<Waiting>& waiting = owners_[{lock.process, lock.address}].waiting;
  const auto found =
      std::find_if(waiting.rbegin(), waiting.rend(),
                   [&](const Waiting& call) { return call.thread == thread; });
  if (found == waiting.rend()) return {};
  std::vector<LockShare> holders = std::move(found->holders);
  waiting.erase(std::next(found).base());
  return holders;
}

// A hold ends: those that wait learn who had the lock. Returns them.
std::vector<LockShare> LockTable::told_waiters(Owners& owners, const Hold& hold,
                                               int64_t time_ns) {
  std::vector<LockShare> waiters;
  for (Waiting& call : owners.waiting) {
    // Readers do not wait for one another.
    if (call.thread == hold.span.thread || (call.shared && hold.shared)) continue;
    const int64_t since_ns = std::max(call.start_ns, hold.span.start_ns);
    if (since_ns >= time_ns) continue;
    const uint64_t waited_ns =
        static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(since_ns);
    call.holders.push_back({hold.span.thread, hold.span.path, waited_ns});
    waiters.push_back({call.thread, call.path, waited_ns});
  }
  return waiters;
}

void LockTable::note_wait(LockSums& sums, const FrameInfo& frame, const Call& call) {
  ++sums.waits;
  sums.waited_ns += frame.cum_ns;
  keep_longer(sums.longest_wait, {frame.cum_ns, frame.start_ns, frame.thread, call.path});
}

// The thread has the lock from now on. `waits`: the call was for nothing else.
void LockTable::acquire(const LockId& lock, const FrameInfo& frame, const Call& call,
                        bool waits, std::vector<LockShare> holders) {
  Owners& owners = owners_[{lock.process, lock.address}];
  const bool shared = call.function.does == Does::kAcquireShared;
  LockSums& sums = locks_[lock];
  if (waits) {
    ++sums.acquired;
    // Readers wait for writers only.
    const auto was_in_the_way = [&](const Owners::Ended& ended) {
      return ended.time_ns >= frame.start_ns && ended.span.thread != frame.thread;
    };
    const Owners::Ended* other = was_in_the_way(owners.exclusive) ? &owners.exclusive
                                 : !shared && was_in_the_way(owners.shared)
                                     ? &owners.shared
                                     : nullptr;
    if (other != nullptr) {
      note_wait(sums, frame, call);
      for (LockShare& share : holders) {
        sums.waited_for[{share.thread, std::move(share.path)}] += share.waited_ns;
      }
      if (sums.longest_wait.start_ns == frame.start_ns &&
          sums.longest_wait.thread == frame.thread) {
        sums.holder = other->span;
      }
    }
  }
  Hold& hold = owners.holds[frame.thread];
  if (hold.depth++ > 0) return;
  hold.shared = shared;
  hold.span = {0, frame.stop_ns, frame.thread, call.path};
}

void LockTable::release(const LockId& lock, ThreadIndex thread, int64_t time_ns) {
  Owners& owners = owners_[{lock.process, lock.address}];
  const auto found = owners.holds.find(thread);
  if (found == owners.holds.end() || --found->second.depth > 0) return;
  Hold& hold = found->second;
  hold.span.duration_ns =
      static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(hold.span.start_ns);
  LockSums& sums = locks_[lock];
  ++sums.holds;
  sums.held_ns += hold.span.duration_ns;
  std::vector<LockShare> waiters = told_waiters(owners, hold, time_ns);
  if (keep_longer(sums.longest_hold, hold.span)) {
    sums.longest_hold_waiters = std::move(waiters);
  }
  Owners::Ended& ended = hold.shared ? owners.shared : owners.exclusive;
  ended = {time_ns, std::move(hold.span)};
  owners.holds.erase(found);
}

std::vector<std::vector<LockWaiter>> LockTable::deadlocks() const {
  absl::btree_map<ThreadIndex, LockWaiter> waiters = waiters_;
  for (auto& [thread, waiter] : waiters) {
    const auto owners = owners_.find({waiter.lock.process, waiter.lock.address});
    if (owners == owners_.end()) continue;
    for (const auto& [holder, hold] : owners->second.holds) waiter.holder = holder;
  }
  std::vector<std::vector<LockWaiter>> rings;
  absl::btree_map<ThreadIndex, size_t> seen;  // which walk has come by
  size_t walk = 0;
  for (const auto& [first, unused] : waiters) {
    ++walk;
    ThreadIndex at = first;
    while (waiters.contains(at) && !seen.contains(at)) {
      seen[at] = walk;
      at = waiters[at].holder;
    }
    if (!waiters.contains(at) || seen[at] != walk) continue;
    std::vector<LockWaiter>& ring = rings.emplace_back();
    const ThreadIndex begin = at;
    do {
      ring.push_back(waiters[at]);
      at = waiters[at].holder;
    } while (at != begin);
  }
  return rings;
}

}  // namespace arctrace::reader
