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
    if (is_acquire(call.function)) {
      waiters_[frame.thread] = {frame.thread, *call.lock, kNoIndex};
    }
    return;
  }
  if (call.function.does == Does::kWake) ++sums.wakes;
  if (is_acquire(call.function)) {
    Owners& owners = owners_[{call.lock->process, call.lock->address}];
    const std::optional<Waiting> waited = end_waiting(owners, frame.thread);
    if (!call.failed) acquire(*call.lock, frame, call, waited, true);
    forget_holds(owners);
  }
  if (call.function.does == Does::kWait) {
    ++sums.acquired;
    note_wait(sums, frame, call);
    if (call.mutex.has_value()) acquire(*call.mutex, frame, call, std::nullopt, false);
  }
}

void LockTable::wait_for(const LockId& lock, ThreadIndex thread, const Call& call) {
  Owners& owners = owners_[{lock.process, lock.address}];
  owners.waiting.push_back({thread, call.start_ns,
                            call.function.does == Does::kAcquireShared, call.path,
                            owners.first_hold + owners.ended_holds.size()});
}

std::optional<LockTable::Waiting> LockTable::end_waiting(Owners& owners,
                                                         ThreadIndex thread) {
  const auto found =
      std::find_if(owners.waiting.rbegin(), owners.waiting.rend(),
                   [&](const Waiting& call) { return call.thread == thread; });
  if (found == owners.waiting.rend()) return std::nullopt;
  Waiting ended = std::move(*found);
  owners.waiting.erase(std::next(found).base());
  return ended;
}

// Those that ended before any call began that still waits.
void LockTable::forget_holds(Owners& owners) {
  while (
      !owners.ended_holds.empty() &&
      (owners.waiting.empty() || owners.first_hold < owners.waiting.front().first_hold)) {
    owners.ended_holds.pop_front();
    ++owners.first_hold;
  }
}

std::vector<LockShare> LockTable::waiters_for(const Owners& owners,
                                              const EndedHold& hold) {
  std::vector<LockShare> waiters;
  for (const Waiting& call : owners.waiting) {
    const uint64_t waited_ns = hold.waited_by(call);
    if (waited_ns > 0) waiters.push_back({call.thread, call.path, waited_ns});
  }
  return waiters;
}

uint32_t LockTable::holder_of(Owners& owners, LockSums& sums, const LockSpan& span) {
  const auto [found, is_new] = owners.holders.try_emplace(
      {span.thread, span.path}, static_cast<uint32_t>(sums.waited_for.size()));
  if (is_new) sums.waited_for.push_back({span.thread, span.path, 0});
  return found->second;
}

void LockTable::note_wait(LockSums& sums, const FrameInfo& frame, const Call& call) {
  ++sums.waits;
  sums.waited_ns += frame.cum_ns;
  keep_longer(sums.longest_wait, {frame.cum_ns, frame.start_ns, frame.thread, call.path});
}

// The thread has the lock from now on. `waits`: the call was for nothing else; then
// `waited` is what is known of it as a waiting one.
void LockTable::acquire(const LockId& lock, const FrameInfo& frame, const Call& call,
                        const std::optional<Waiting>& waited, bool waits) {
  Owners& owners = owners_[{lock.process, lock.address}];
  const bool shared = call.function.does == Does::kAcquireShared;
  end_doubtful_holds(lock, owners, frame.thread, shared);
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
      const uint64_t first = waited.has_value() ? waited->first_hold - owners.first_hold
                                                : owners.ended_holds.size();
      for (uint64_t i = first; i < owners.ended_holds.size(); ++i) {
        const EndedHold& ended = owners.ended_holds[i];
        sums.waited_for[ended.holder].waited_ns += ended.waited_by(*waited);
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
  if (found == owners.holds.end()) return;
  if (--found->second.depth > 0) {
    found->second.last_release_ns = time_ns;
    return;
  }
  end_hold(lock, owners, found, time_ns);
}

// A mutex that its owner takes again is a recursive one, or checks for errors and
// refuses. What the call returned is not known of all traces. But if another thread has
// the lock now, the last release was the end.
void LockTable::end_doubtful_holds(const LockId& lock, Owners& owners, ThreadIndex taker,
                                   bool shared) {
  for (auto at = owners.holds.begin(); at != owners.holds.end();) {
    const auto& [thread, hold] = *at;
    const bool is_over =
        thread != taker && !(shared && hold.shared) && hold.last_release_ns != INT64_MIN;
    if (!is_over) {
      ++at;
      continue;
    }
    const ThreadIndex ended = thread;
    end_hold(lock, owners, at, hold.last_release_ns);
    at = owners.holds.upper_bound(ended);
  }
}

void LockTable::end_hold(const LockId& lock, Owners& owners, Holds::iterator found,
                         int64_t time_ns) {
  const ThreadIndex thread = found->first;
  Hold& hold = found->second;
  hold.span.duration_ns =
      static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(hold.span.start_ns);
  LockSums& sums = locks_[lock];
  ++sums.holds;
  sums.held_ns += hold.span.duration_ns;
  EndedHold ended_hold = {hold.span.start_ns, time_ns, thread, 0, hold.shared};
  if (keep_longer(sums.longest_hold, hold.span)) {
    sums.longest_hold_waiters = waiters_for(owners, ended_hold);
  }
  if (!owners.waiting.empty()) {
    ended_hold.holder = holder_of(owners, sums, hold.span);
    owners.ended_holds.push_back(ended_hold);
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
