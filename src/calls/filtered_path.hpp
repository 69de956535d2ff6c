// The path of nearly every entry and exit while a call filter is in force, when the fast
// path is closed: a thread's outermost writer call, about a call whose caller is known.
// No record is written of a call that is filtered out, and no clock is read. A call that
// waits for its duration reads the clock at both ends. A call that is recorded is written
// where the fast path would write it. Everything else takes the slow path from its
// beginning (call_records.hpp), which also does what the first call under a filter needs.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/calls/call_filter.hpp"
#include "src/calls/fast_path.hpp"
#include "src/calls/opening_frames.hpp"
#include "src/process/gate.hpp"
#include "src/stack/open_calls.hpp"
#include "src/writer/record.hpp"
#include "src/writer/shared_records.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {

// What has become of an entry.
enum class FilteredEntry : uint8_t {
  kUndone,   // nothing was done: it takes the slow path
  kLeftOut,  // nothing is recorded of the call, and no frame was added for it
  kAdded,    // a frame was added, and recorded unless it is hidden or waits
};

// Whether a hidden call that changes nothing inside it is to have a frame all the same,
// because its exit looks for one.
enum class HiddenFrames : uint8_t { kNone, kAlways };

// Whether calls may take this path. `live_filter`: the number of the live filter that the
// caller's flags are by; the exit of a call asks for none.
inline bool filtered_path_is_open() {
  return has_any_bit<ARCTRACE_GATE_FUNCTIONS>(current_filtered_gate().gate);
}
inline bool filtered_path_is_open_by(uint32_t live_filter) {
  const volatile FastGate& gate = current_filtered_gate();
  return has_any_bit<ARCTRACE_GATE_FUNCTIONS>(gate.gate) &&
         gate.live_filter_number == live_filter;
}

// Whether the calling thread, which is in its outermost writer call, can use this path.
inline bool has_filtered_frames(const ThreadLocal& local) {
  const ThreadState* state = local.state;
  return state != nullptr && state->attached && state->filtered.seen &&
         !may_have_open_frames(local);
}

// Whether the outermost call that waits has lasted long enough at `ticks`; it has begun
// before all others that wait.
inline bool has_long_call(const ThreadState& state, uint64_t ticks) {
  const uint32_t first = state.filtered.first_waiting;
  return first != 0 &&
         static_cast<int64_t>(ticks - state.filtered.frames[first - 1].ticks) >=
             static_cast<int64_t>(call_filter.ticks_min);
}

// Reserves the usual record in the thread's own block, or else in the shared chain.
// False: there is no space, or something is to be written or decided before.
template <class Stamp>
__attribute__((always_inline)) inline bool reserve_usual(ThreadState& state,
                                                         uint16_t type,
                                                         uint32_t body_size,
                                                         Reservation& reserved) {
  const uint32_t length = Stamp::kHeadSize + body_size;
  std::byte* begin;
  if (!find_space(state, length, begin)) {
    return reserve_in_known_block(state, type, body_size, Stamp::ticks(state), reserved);
  }
  Stamp stamp;
  if (!stamp.read(state)) return false;
  reserved = stamp.begin(state, begin, type, length);
  count_written(state);
  return true;
}

// Adds the frame of a call that is not recorded, or not yet, and publishes one that
// waits. Store: as for complete_enter().
template <class Store>
__attribute__((always_inline)) inline void add_filtered_frame(
    ThreadState& state, FrameSlot slot, FilteredFrame::Reporting reporting,
    const Store& store) {
  add_unrecorded_frame(Nesting::kOutermost, state, slot, store);
  if (reporting != FilteredFrame::Reporting::kWaiting) return;
  const uint32_t number = uint32_t{slot.at} + 1;
  uint32_t& first = state.filtered.first_waiting;
  if (first == 0 || first > number) first = number;
  take_back_published_calls(state);
  publish_waiting_call(state, number - 1, call_filter.ticks_min);
}

// Whether a call of a function with these flags can be left out in this context, which is
// that of the innermost frame.
inline bool may_be_left_out(FilterContext inside, uint32_t flags) {
  if (inside.is_notrace() || (flags & ARCTRACE_SHIM_HIDDEN) != 0) return true;
  if ((flags & ARCTRACE_SHIM_FILTERED_IN) != 0) return false;
  const bool filter_in_only = IpcAtomics::load_relaxed(call_filter.filter_in_only) != 0;
  return (filter_in_only && !inside.is_filtered_in()) ||
         (call_filter.depth_max != 0 && inside.level() >= call_filter.depth_max);
}

// Whether a stub's call is left out and needs no frame, as far as that can be told
// without the clock. Nothing is stored, so this is no writer call: a handler that
// interrupts it leaves the open frames as they were. REQUIRES: the filtered path is open
// by the filter that the call's flags are by.
inline bool is_left_out(const StubCall& call) {
  const ThreadLocal& local = thread_local_state;
  if (is_inside_writer() || call_filter.ticks_min != 0 || !has_filtered_frames(local)) {
    return false;
  }
  const ThreadState& state = *local.state;
  const FrameCount at = state.open.depth;
  if (uint32_t{at} >= OpenFrames::kMax ||
      !is_known_stub_call(state, state.open.frame_at(at), call, *call.return_slot)) {
    return false;
  }
  return is_without_effect(local, filtered_frame(local, call.flags, 0));
}

// Enters `key`, if fits(state, to), as enter_fast() does it. `here`: for the writer call.
// After fits(), flags() are the function's for the filter, and make_frame() makes its
// machine frame. REQUIRES: the filtered path is open by the filter that the flags are by,
// and the Stamp is the session's.
template <class Stamp, class Fits, class Flags, class MakeFrame, class Locks = NoLocks>
__attribute__((always_inline)) inline FilteredEntry enter_filtered_usual(
    uint64_t key, uintptr_t here, HiddenFrames hidden_frames, const Fits& fits,
    const Flags& flags, const MakeFrame& make_frame, const Locks& locks = {}) {
  using Reporting = FilteredFrame::Reporting;
  if (is_inside_writer()) return FilteredEntry::kUndone;
  OutermostCall::begin(here);
  const auto refuse = []() ARCTRACE_INLINED {
    OutermostCall::refuse();
    return FilteredEntry::kUndone;
  };
  ThreadLocal& local = thread_local_state;
  if (!has_filtered_frames(local)) return refuse();
  ThreadState& state = *local.state;
  const FrameCount at = state.open.depth;
  const uint32_t number = at;
  if (number >= OpenFrames::kMax) return refuse();
  OpenFrame* const to = state.open.frame_at(at);
  if (!fits(state, to)) return refuse();
  const uint64_t ticks = call_filter.ticks_min != 0 ? Stamp::ticks(state) : 0;
  if (has_long_call(state, ticks)) return refuse();
  const FilteredFrame filtered = filtered_frame(local, flags(), ticks);
  if (hidden_frames == HiddenFrames::kNone && is_without_effect(local, filtered)) {
    local.filter_context = filtered.inside;
    OutermostCall::end(here);
    return FilteredEntry::kLeftOut;
  }
  const auto store = [&](ThreadState& its_state) ARCTRACE_INLINED {
    its_state.filtered.frames[number] = filtered;
    to->store(key, make_frame());
  };
  if (filtered.reporting == Reporting::kReported) {
    // Calls that wait are recorded first.
    if (state.filtered.first_waiting != 0) return refuse();
    Reservation record;
    if (!reserve_usual<Stamp>(
            state, ARCTRACE_TYPE_ENTER,
            static_cast<uint32_t>(sizeof(arctrace_frame_body)) + locks.size(), record)) {
      return refuse();
    }
    complete_enter(Nesting::kOutermost, state, record, key, {at, to}, store, locks);
  } else {
    // A call that waits is published, and its locks would have to be kept.
    if (filtered.reporting == Reporting::kWaiting &&
        (!has_waiting_record(state) || locks.size() != 0)) {
      return refuse();
    }
    add_filtered_frame(state, {at, to}, filtered.reporting, store);
  }
  local.filter_context = filtered.inside;
  OutermostCall::end(here);
  return FilteredEntry::kAdded;
}

// Leaves the thread's innermost frame, if is_exited(state, frame) says that it is the
// one, and calls after(). False: nothing was done. `here`: as above. REQUIRES: the
// filtered path is open, and the Stamp is the session's.
template <class Stamp, class IsExited, class After>
__attribute__((always_inline)) inline bool exit_filtered_usual(uintptr_t here,
                                                               const IsExited& is_exited,
                                                               const After& after) {
  using Reporting = FilteredFrame::Reporting;
  if (is_inside_writer()) return false;
  OutermostCall::begin(here);
  ThreadLocal& local = thread_local_state;
  if (!has_filtered_frames(local)) return OutermostCall::refuse();
  ThreadState& state = *local.state;
  const FrameCount exited = state.open.depth.previous();
  const OpenFrame* innermost = state.open.stored_frame_at(exited);
  if (innermost == nullptr || !is_exited(state, *innermost)) {
    return OutermostCall::refuse();
  }
  uint32_t& first_waiting = state.filtered.first_waiting;
  const uint32_t number = exited;
  const Reporting reporting = state.filtered.frames[number].reporting;
  if (reporting == Reporting::kReported) {
    if (first_waiting != 0) return OutermostCall::refuse();
    Reservation record;
    if (!reserve_usual<Stamp>(state, ARCTRACE_TYPE_EXIT, 0, record)) {
      return OutermostCall::refuse();
    }
    commit_leave(Nesting::kOutermost, state, record, exited);
  } else {
    if (first_waiting != 0) {
      if (has_long_call(state, Stamp::ticks(state))) return OutermostCall::refuse();
      if (first_waiting > number) first_waiting = 0;
    }
    state.open.depth = exited;
    if (reporting == Reporting::kWaiting) take_back_published_calls(state);
  }
  after();
  local.filter_context = context_here(local);
  OutermostCall::end(here);
  return true;
}

// The functions below REQUIRE that the filtered path is open.

// Begins a stub's call as call_began_slow() does it. kLeftOut: the stub is to jump to the
// function. `locks`: the addresses of this many locks are recorded in its entry.
__attribute__((noinline)) FilteredEntry begin_filtered_call(uint64_t key,
                                                            const StubCall& call);
__attribute__((noinline)) FilteredEntry begin_filtered_lock_call(
    uint64_t key, const StubCall& call, uint32_t locks, const uintptr_t* arguments);

// As above, for a call that may be ready, and may have locks among `arguments`, its first
// two (null: it has none).
__attribute__((noinline)) FilteredEntry begin_filtered_stub_call(
    const arctrace_shim_stub_call& call, const uintptr_t* return_slot,
    const uintptr_t* arguments = nullptr);

// Ends a stub's call as call_ended_slow() does it. False: nothing was done.
__attribute__((noinline)) bool end_filtered_call(uintptr_t* return_slot);

// Enters and leaves a frame of the API: as arctrace_enter_at() and arctrace_exit(), with
// the address for the writer call. False: nothing was done.
__attribute__((noinline)) bool enter_filtered_frame(uint64_t key, uintptr_t cfa,
                                                    uintptr_t here);
__attribute__((noinline)) bool exit_filtered_frame(uint64_t key, uintptr_t here);

}  // namespace arctrace::writer
