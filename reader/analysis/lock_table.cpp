#include "reader/analysis/lock_table.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <utility>

#include "reader/trace/call_args.hpp"

namespace arctrace::reader {
namespace {

// Whether the span was the longest so far.
bool keep_longer(LockSpan& longest, const LockSpan& span) {
  if (longest.thread != kNoIndex && span.duration_ns <= longest.duration_ns) return false;
  longest = span;
  return true;
}

bool is_acquire(const LockUse& use) {
  return use.action == LockAction::kAcquire || use.action == LockAction::kAcquireShared;
}

bool is_shared(const LockUse& use) { return use.action == LockAction::kAcquireShared; }

uint64_t time_between(int64_t start_ns, int64_t stop_ns) {
  return static_cast<uint64_t>(stop_ns) - static_cast<uint64_t>(start_ns);
}

}  // namespace

const LockUse* LockTable::use_of(FunctionId function) {
  if (function >= known_.size()) known_.resize(function + 1);
  auto& [is_known, found] = known_[function];
  if (!is_known) found = lock_use((*functions_)[function]);
  is_known = true;
  return found.has_value() ? &*found : nullptr;
}

uint64_t LockTable::frame_opened(const FrameInfo& frame) {
  std::vector<FunctionId>& stack = stacks_[{frame.thread, frame.coroutine}];
  stack.resize(frame.depth - 1);
  const LockUse* use = use_of(frame.function);
  uint64_t token = 0;
  if (use != nullptr) {
    token = next_token_++;
    Call& call = calls_[token];
    call.use = *use;
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
  const bool had_lock = call.lock.has_value();
  const ProcessIndex process = definitions_.threads()[args.thread].process;
  for (const CallArg& arg : decode_args(args.record->body, "")) {
    if (!is_number_kind(arg.kind)) continue;
    if (args.record->type == ARCTRACE_TYPE_RESULT) {
      if (arg.index == 0 && arg.number != 0) call.failed = true;
    } else if (arg.index == 1) {
      call.lock = LockId{process, arg.number};
    } else if (arg.index == 2 && call.use.action == LockAction::kWait &&
               call.use.kind == LockKind::kCondition) {
      call.mutex = LockId{process, arg.number};
    }
  }
  if (args.record->type == ARCTRACE_TYPE_RESULT || had_lock || !call.lock.has_value()) {
    return;
  }
  const auto [sums, is_first] = locks_.try_emplace(*call.lock);
  if (is_first) sums->second.first_path = call.path;
  if (is_acquire(call.use) && call.use.wait != LockWait::kTries) {
    wait_for(*call.lock, args.thread, args.token, call);
  }
  // The lock that the call releases is free from the call's beginning on.
  if (call.use.action == LockAction::kRelease) {
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
  sums.kind = call.use.kind;
  if ((frame.flags & (kFrameOpen | kFrameCutStop)) != 0) {
    stay_open(frame, token, call);
    return;
  }
  if (call.use.action == LockAction::kWake) ++sums.wakes;
  if (is_acquire(call.use)) {
    if (!call.failed) {
      end_doubtful_holds(*call.lock, frame.thread, is_shared(call.use));
    }
    if (call.use.wait != LockWait::kTries) end_wait(*call.lock, token, frame.stop_ns);
    if (!call.failed) {
      ++sums.acquired;
      begin_hold(*call.lock, frame, call);
    }
  }
  if (call.use.action == LockAction::kWait) {
    ++sums.acquired;
    note_wait_for_nobody(sums, {time_between(frame.start_ns, frame.stop_ns),
                                frame.start_ns, frame.thread, call.path});
    if (call.mutex.has_value()) {
      end_doubtful_holds(*call.mutex, frame.thread, false);
      begin_hold(*call.mutex, frame, call);
    }
  }
}

// Handles a call that had not returned when its thread, the trace or the time range
// ended. If it takes a lock, finish() counts its wait, because only then all holds are
// known.
void LockTable::stay_open(const FrameInfo& frame, uint64_t token, const Call& call) {
  if (call.use.action == LockAction::kWait) {
    note_wait_for_nobody(locks_[*call.lock],
                         {time_between(frame.start_ns, frame.stop_ns), frame.start_ns,
                          frame.thread, call.path, true});
  }
  if (!is_acquire(call.use) || call.use.wait == LockWait::kTries) return;
  waiters_[frame.thread] = {frame.thread, *call.lock, kNoIndex};
  for (Waiting& waiting : owners_of(*call.lock).waiting) {
    if (waiting.token != token) continue;
    waiting.stop_ns = frame.stop_ns;
    waiting.is_open = true;
  }
}

void LockTable::finish(std::span<const ThreadTree> threads) {
  if (std::exchange(is_finished_, true)) return;
  absl::flat_hash_map<ThreadIndex, int64_t> ends;
  for (const ThreadTree& thread : threads) ends[thread.thread] = thread.stop_ns;
  for (auto& [id, owners] : owners_) {
    const LockId lock = {id.first, id.second};
    close_open_holds(lock, owners, ends);
    LockSums& sums = locks_[lock];
    for (const Waiting& call : owners.waiting) {
      count_wait(owners, sums, call, last_holder(owners, call));
    }
  }
}

// ---- Waits -------------------------------------------------------------------

void LockTable::wait_for(const LockId& lock, ThreadIndex thread, uint64_t token,
                         const Call& call) {
  Owners& owners = owners_of(lock);
  owners.waiting.push_back({token, thread, call.start_ns, is_shared(call.use), call.path,
                            owners.first_hold + owners.ended_holds.size()});
}

// Ends the wait of a call that returned. It waited only if another thread had the lock
// meanwhile.
void LockTable::end_wait(const LockId& lock, uint64_t token, int64_t stop_ns) {
  Owners& owners = owners_of(lock);
  const auto found = std::find_if(owners.waiting.begin(), owners.waiting.end(),
                                  [&](const Waiting& at) { return at.token == token; });
  if (found == owners.waiting.end()) return;
  Waiting call = std::move(*found);
  owners.waiting.erase(found);
  call.stop_ns = stop_ns;
  const LastHolder holder = last_holder(owners, call);
  if (holder.span != nullptr) count_wait(owners, locks_[lock], call, holder);
  forget_holds(owners);
}

LockTable::LastHolder LockTable::last_holder(const Owners& owners, const Waiting& call) {
  for (const auto& [thread, hold] : owners.holds) {
    if (!hold.is_doubtful && call.waits_for(thread, hold.shared)) {
      return {&hold.span, true};
    }
  }
  for (const Owners::Ended* ended : {&owners.exclusive, &owners.shared}) {
    if (ended->time_ns >= call.start_ns &&
        call.waits_for(ended->span.thread, ended == &owners.shared)) {
      return {&ended->span, false};
    }
  }
  return {};
}

// Returns whether the wait was the longest so far.
bool LockTable::note_wait(LockSums& sums, const LockSpan& wait) {
  ++sums.waits;
  if (wait.is_open) ++sums.open_waits;
  sums.waited_ns += wait.duration_ns;
  return keep_longer(sums.longest_wait, wait);
}

void LockTable::note_wait_for_nobody(LockSums& sums, const LockSpan& wait) {
  note_wait(sums, wait);
  sums.waited_for_nobody_ns += wait.duration_ns;
}

// Counts the wait, and divides its time by who had the lock meanwhile.
void LockTable::count_wait(Owners& owners, LockSums& sums, const Waiting& call,
                           const LastHolder& holder) {
  const LockSpan wait = {time_between(call.start_ns, call.stop_ns), call.start_ns,
                         call.thread, call.path, call.is_open};
  if (note_wait(sums, wait)) {
    sums.holder = holder.span == nullptr ? LockSpan{} : *holder.span;
    if (holder.has_it_still && !sums.holder.is_open) {
      sums.holder.duration_ns = time_between(sums.holder.start_ns, call.stop_ns);
    }
  }
  std::vector<EndedHold> meanwhile;
  for (uint64_t i = call.first_hold - owners.first_hold; i < owners.ended_holds.size();
       ++i) {
    const EndedHold& hold = owners.ended_holds[i];
    if (hold.waited_by(call) > 0) meanwhile.push_back(hold);
  }
  // Threads that still have the lock count, too. If a thread ends with the lock, nobody
  // gets it.
  for (const auto& [thread, hold] : owners.holds) {
    if (hold.is_doubtful || !call.waits_for(thread, hold.shared)) continue;
    meanwhile.push_back({hold.span.start_ns, INT64_MAX, thread,
                         holder_of(owners, sums, hold.span), hold.shared});
  }
  // The last hold comes first: the time that it covers is not divided again.
  std::stable_sort(
      meanwhile.begin(), meanwhile.end(),
      [](const EndedHold& a, const EndedHold& b) { return a.stop_ns > b.stop_ns; });
  uint64_t rest_ns = wait.duration_ns;
  int64_t until_ns = call.stop_ns;
  for (const EndedHold& hold : meanwhile) {
    const int64_t since_ns = std::max(call.start_ns, hold.start_ns);
    const int64_t stop_ns = std::min(until_ns, hold.stop_ns);
    if (since_ns >= stop_ns) continue;
    sums.waited_for[hold.holder].waited_ns += time_between(since_ns, stop_ns);
    rest_ns -= time_between(since_ns, stop_ns);
    until_ns = since_ns;
  }
  sums.waited_for_nobody_ns += rest_ns;
}

// Forgets the holds that ended before any of the calls that still wait began.
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

// ---- Holds -------------------------------------------------------------------

// The thread has the lock from the end of the call on.
void LockTable::begin_hold(const LockId& lock, const FrameInfo& frame, const Call& call) {
  Hold& hold = owners_of(lock).holds[frame.thread];
  if (hold.is_doubtful) {
    // Others had it meanwhile: this is another hold.
    ++without_end_;
    hold = Hold();
  }
  if (hold.depth++ > 0) return;
  hold.shared = is_shared(call.use);
  hold.span = {0, frame.stop_ns, frame.thread, call.path};
}

void LockTable::release(const LockId& lock, ThreadIndex thread, int64_t time_ns) {
  Owners& owners = owners_of(lock);
  const auto found = owners.holds.find(thread);
  if (found == owners.holds.end()) {
    // Either the lock was taken unseen, or this is the end of another thread's hold.
    for (auto& [other, hold] : owners.holds) hold.is_doubtful |= !hold.shared;
    return;
  }
  if (--found->second.depth > 0) {
    found->second.last_release_ns = time_ns;
    return;
  }
  end_hold(lock, owners, found, time_ns);
}

// A mutex that its owner takes again is a recursive one, or checks for errors and
// refuses. What the call returned is not known of all traces. But if another thread has
// the lock now, the last release was the end. Without any release the end was not seen.
void LockTable::end_doubtful_holds(const LockId& lock, ThreadIndex taker, bool shared) {
  Owners& owners = owners_of(lock);
  for (auto at = owners.holds.begin(); at != owners.holds.end();) {
    const ThreadIndex thread = at->first;
    Hold& hold = at->second;
    const bool is_over = thread != taker && !(shared && hold.shared);
    if (is_over && hold.last_release_ns != INT64_MIN) {
      end_hold(lock, owners, at, hold.last_release_ns);
      at = owners.holds.upper_bound(thread);
      continue;
    }
    hold.is_doubtful |= is_over;
    ++at;
  }
}

void LockTable::end_hold(const LockId& lock, Owners& owners, Holds::iterator found,
                         int64_t time_ns) {
  Hold& hold = found->second;
  hold.span.duration_ns = time_between(hold.span.start_ns, time_ns);
  count_hold(owners, locks_[lock], hold, time_ns);
  Owners::Ended& ended = hold.shared ? owners.shared : owners.exclusive;
  ended = {time_ns, std::move(hold.span)};
  owners.holds.erase(found);
}

void LockTable::count_hold(Owners& owners, LockSums& sums, const Hold& hold,
                           int64_t stop_ns) {
  ++sums.holds;
  if (hold.span.is_open) ++sums.open_holds;
  sums.held_ns += hold.span.duration_ns;
  EndedHold ended = {hold.span.start_ns, stop_ns, hold.span.thread, 0, hold.shared};
  if (keep_longer(sums.longest_hold, hold.span)) {
    sums.longest_hold_waiters = waiters_for(owners, ended);
  }
  if (owners.waiting.empty() || hold.span.is_open) return;
  ended.holder = holder_of(owners, sums, hold.span);
  owners.ended_holds.push_back(ended);
}

// Counts the holds that were not released, up to the ends of their threads.
void LockTable::close_open_holds(const LockId& lock, Owners& owners,
                                 const absl::flat_hash_map<ThreadIndex, int64_t>& ends) {
  for (auto at = owners.holds.begin(); at != owners.holds.end();) {
    const ThreadIndex thread = at->first;
    Hold& hold = at->second;
    if (hold.last_release_ns != INT64_MIN && owners.waiting.empty()) {
      // The thread had the lock up to there; whether it had it later is not known.
      end_hold(lock, owners, at, hold.last_release_ns);
      at = owners.holds.upper_bound(thread);
      continue;
    }
    ++at;
    if (hold.is_doubtful) {
      ++without_end_;
      continue;
    }
    const auto end = ends.find(thread);
    const int64_t stop_ns = end == ends.end() ? hold.span.start_ns
                                              : std::max(hold.span.start_ns, end->second);
    hold.span.duration_ns = time_between(hold.span.start_ns, stop_ns);
    hold.span.is_open = true;
    count_hold(owners, locks_[lock], hold, stop_ns);
  }
}

// ---- Deadlocks ---------------------------------------------------------------

std::vector<std::vector<LockWaiter>> LockTable::deadlocks() const {
  absl::btree_map<ThreadIndex, LockWaiter> waiters = waiters_;
  for (auto& [thread, waiter] : waiters) {
    const auto owners = owners_.find({waiter.lock.process, waiter.lock.address});
    if (owners == owners_.end()) continue;
    for (const auto& [holder, hold] : owners->second.holds) {
      if (!hold.is_doubtful) waiter.holder = holder;
    }
  }
  std::vector<std::vector<LockWaiter>> rings;
  absl::btree_map<ThreadIndex, size_t> seen;  // the walk that met the thread
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
