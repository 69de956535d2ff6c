// The slow path of function entries and exits: records frames that were abandoned, and
// applies the filter.
#include "src/calls/call_records.hpp"

#include <atomic>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/calls/call_filter.hpp"
#include "src/calls/opening_frames.hpp"
#include "src/calls/stack_switch.hpp"
#include "src/process/session.hpp"
#include "src/stack/abandoned_frames.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/record.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {
namespace {

constexpr uint32_t kNoFrame = UINT32_MAX;

// Writes the record of record_unwind(). REQUIRES: more than `depth` frames are open.
void write_unwind(Nesting nesting, ThreadState& state, uint32_t depth, uint64_t ticks) {
  const uint32_t count = state.filtered.reported_frames(state.open.depth) -
                         state.filtered.reported_frames(depth);
  // Waiting calls are further in than recorded ones, so they end unrecorded.
  if (state.filtered.first_waiting > depth) state.filtered.first_waiting = 0;
  if (count == 0) {
    state.open.depth = depth;
    return;
  }
  const Reservation record =
      reserve(nesting, ARCTRACE_TYPE_UNWIND, sizeof(arctrace_unwind_body), ticks);
  if (record.word0 != nullptr) part_at<arctrace_unwind_body>(record.body).count = count;
  commit_leave(nesting, state, record, depth);
}

// Records that only the outermost `depth` frames are still open. It skips the frames
// whose end an interrupted call is about to record: that record comes later, but has an
// earlier time, and would end the frames once more.
void record_unwind(Nesting nesting, ThreadState& state, uint32_t depth, uint64_t ticks) {
  uint32_t& leaving = thread_local_state.leaving;
  const uint32_t of_interrupted = leaving;
  if (depth < of_interrupted) depth = of_interrupted;
  if (depth >= state.open.depth) return;
  leaving = state.open.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  write_unwind(nesting, state, depth, ticks);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  leaving = of_interrupted;
}

// Records that frames were abandoned which can't be open when `key` is entered in
// `frame`, and remembers the call if its caller is certain then. Takes its arguments by
// value, so that callers keep them in registers.
__attribute__((noinline)) void leave_frames(Nesting nesting, uint64_t key,
                                            MachineFrame frame, arctrace_shim_call call,
                                            uint64_t ticks) {
  ThreadState& state = *thread_local_state.state;
  CallEdges& edges = thread_local_state.edges;
  if (has_known_caller(thread_local_state.stacks, state.open, edges, frame)) return;
  // With the gate closed, the exits of a handler that interrupted this call are no longer
  // recorded, and the handler's entries come after this call's time.
  if (!is_recorded(ARCTRACE_GATE_FUNCTIONS)) return;
  EntryDepth entry_depth =
      depth_at_entry(thread_local_state.stacks, state.open, key, frame, call);
  // A vfork child enters no function in place of its parent's, wherever its stack is.
  if (thread_local_state.is_vforking && entry_depth.depth < state.vfork_depth) {
    const uint32_t open = state.open.depth;
    entry_depth = {state.vfork_depth < open ? state.vfork_depth : open, false};
  }
  record_unwind(nesting, state, entry_depth.depth, ticks);
  if (!entry_depth.is_edge || nesting.nested()) return;
  const OpenFrame* caller = innermost_with_cfa(state.open);
  if (caller == nullptr || !is_certain_caller(*caller, frame)) return;
  const MachineFrame as_caller = caller_frame(*caller);
  if (!CallEdges::can_add(as_caller, frame)) return;
  if (edges.add(as_caller, frame, call)) {
    edges.begin_use(state.edges, make_large_edges(state));
  }
}

// The locks among the gathered values of a call (null: there are none).
struct GatheredLocks {
  const ArgsBody* args;

  uint32_t size() const { return args != nullptr && args->are_locks ? args->size : 0; }
  void store(std::byte* to) const {
    if (size() != 0) copy_bytes(to, args->bytes, args->size);
  }
};

// Writes the entry of `key`, with the locks among `args`, whose frame store(state, at)
// keeps at that index. False: there is no state to keep it in.
template <class Store>
bool write_enter(Nesting nesting, uint64_t key, uint64_t ticks, const ArgsBody* args,
                 const Store& store) {
  const GatheredLocks locks{args};
  return with_record(nesting, ARCTRACE_TYPE_ENTER,
                     static_cast<uint32_t>(sizeof(arctrace_frame_body)) + locks.size(),
                     ticks, [&](const Reservation& record) {
                       ThreadState* state = thread_local_state.state;
                       if (state == nullptr) return false;
                       const FrameCount at = state->open.depth;
                       complete_enter(
                           nesting, *state, record, key, {at, state->open.slot(at)},
                           [&](ThreadState& to) { store(to, at); }, locks);
                       return true;
                     });
}

// Adds a frame that is not recorded, or not yet.
template <class Store>
void push_unreported(Nesting nesting, ThreadState& state,
                     FilteredFrame::Reporting reporting, const Store& store) {
  const FrameCount at = state.open.depth;
  add_unrecorded_frame(nesting, state, {at, state.open.slot(at)},
                       [&](ThreadState& to) { store(to, at); });
  const bool waits = reporting == FilteredFrame::Reporting::kWaiting;
  if (waits &&
      (state.filtered.first_waiting == 0 || state.filtered.first_waiting > at + 1)) {
    state.filtered.first_waiting = at + 1;
  }
  if (!waits) return;
  take_back_published_calls(state);
  publish_waiting_call(state, at, call_filter.ticks_min);
}

// The filter's view of a call that is about to be entered, after frames were dropped that
// can't be open then. A call for whose frame there is no space is lost, and gets none.
// REQUIRES: the thread is attached.
FilteredFrame filter_call(Nesting nesting, uint64_t key, const MachineFrame& frame,
                          const arctrace_shim_call& call, uint64_t ticks) {
  ThreadState& state = *thread_local_state.state;
  report_long_calls(nesting, state, ticks);
  if (frame.cfa != 0) leave_frames(nesting, key, frame, call, ticks);
  if (state.open.depth >= OpenFrames::kMax &&
      may_report_deeper(thread_local_state, call.flags)) {
    count_lost_call(state, ticks);
  }
  FilteredFrame filtered = filtered_frame(thread_local_state, call.flags, ticks);
  // A call that interrupts a record is written into another block, and can't wait.
  if (filtered.reporting == FilteredFrame::Reporting::kWaiting && nesting.nested()) {
    filtered.reporting = FilteredFrame::Reporting::kReported;
  }
  return filtered;
}

__attribute__((noinline)) bool enter_filtered(Nesting nesting, uint64_t key,
                                              MachineFrame frame, arctrace_shim_call call,
                                              uint64_t ticks, const ArgsBody* args) {
  ThreadState* state = recording_thread(nesting, ticks);
  if (state == nullptr) return false;
  FilteredFrame filtered = filter_call(nesting, key, frame, call, ticks);
  if (args != nullptr && filtered.reporting == FilteredFrame::Reporting::kWaiting) {
    keep_args(*state, filtered, *args);
  }
  const auto store = [&](ThreadState& to, uint32_t at) {
    to.open.store(at, key, frame);
    if (at < OpenFrames::kMax) to.filtered.frames[at] = filtered;
  };
  if (filtered.reporting == FilteredFrame::Reporting::kReported) {
    write_enter(nesting, key, ticks, args, store);
  } else {
    push_unreported(nesting, *state, filtered.reporting, store);
  }
  keep_filter_context(thread_local_state);
  return true;
}

// Writes arguments (not locks) or a result of the innermost frame, if that was recorded.
void write_args(Nesting nesting, uint16_t type, const ArgsBody& args, uint64_t ticks) {
  const ThreadState* state = thread_local_state.state;
  if (args.size == 0 || args.are_locks || state == nullptr || state->open.depth == 0 ||
      !state->filtered.is_reported(state->open.depth - 1)) {
    return;
  }
  write_record(nesting, type, args.size, ticks,
               [&args](std::byte* body) { copy_bytes(body, args.bytes, args.size); });
}

// The index of the innermost frame of `key` among the outermost `depth`, or kNoFrame.
uint32_t find_frame(const ThreadState& state, uint64_t key, uint32_t depth) {
  while (depth > 0) {
    if (state.open.frames[--depth].key == key) return depth;
  }
  return kNoFrame;
}

// Leaves the innermost frame. `retval` (null: none) is recorded before its exit.
void write_exit(Nesting nesting, ThreadState& state, const ArgsBody* retval,
                uint64_t ticks) {
  if (retval != nullptr) write_args(nesting, ARCTRACE_TYPE_RESULT, *retval, ticks);
  if (!state.filtered.is_reported(state.open.depth - 1)) {
    state.open.depth = state.open.depth - 1;
    return;
  }
  with_record(nesting, ARCTRACE_TYPE_EXIT, 0, ticks, [&](const Reservation& record) {
    commit_leave(nesting, state, record, state.open.depth - 1);
  });
}

// Writes the exit of a frame that the writer does not know, after which `depth` are open.
void write_named_exit(Nesting nesting, ThreadState& state, uint64_t key, uint32_t depth,
                      uint64_t ticks) {
  if (state.open.depth == 0 && state.coroutine == 0) leave_inherited_frame(state, key);
  const bool is_deep = filter_is_active() && state.open.depth > OpenFrames::kMax;
  if (is_deep ? state.open.depth > state.filtered.reported_depth
              : !unknown_exit_is_reported(thread_local_state)) {
    state.open.depth = depth;
    return;
  }
  const Reservation record =
      reserve(nesting, ARCTRACE_TYPE_EXIT_NAMED, sizeof(arctrace_frame_body), ticks);
  if (record.word0 != nullptr) part_at<arctrace_frame_body>(record.body).key = key;
  commit_leave(nesting, state, record, depth);
}

// Whether the frame at `open` is further out than the machine frame at `cfa`.
bool is_another_call(const ThreadStacks& stacks, const MachineFrame& open,
                     uintptr_t cfa) {
  return stacks.which(cfa) == ThreadStacks::Which::kOwn && open.cfa > cfa &&
         !open.has(ARCTRACE_SHIM_CFA_GUESSED);
}

// Whether functions were off at times, so that some may be open that were not recorded.
bool was_off_meanwhile() {
  arctrace_control& control = session.view.control();
  // R2, matches R1 (Buffer::set_gate, update_unfiltered).
  IpcAtomics::load_acquire(control.gate);
  IpcAtomics::load_acquire(control.unfiltered);
  return IpcAtomics::load_relaxed(control.functions_on) > 1;
}

// Leaves a frame that is not the innermost one as the writer knows them.
__attribute__((noinline)) void leave_another(Nesting nesting, uint64_t key, uintptr_t cfa,
                                             uint64_t ticks, const ArgsBody* retval) {
  ThreadState* state = recording_thread(nesting, ticks);
  if (state == nullptr) return;
  const ThreadStacks& stacks = thread_local_state.stacks;
  record_unwind(nesting, *state, depth_above(stacks, state->open, MachineFrame(cfa)),
                ticks);
  if (state->open.depth > OpenFrames::kMax) {
    write_named_exit(nesting, *state, key, state->open.depth - 1,
                     ticks);  // the reader knows it
    return;
  }
  const uint32_t found = find_frame(*state, key, state->open.depth);
  // The innermost frame is left by any exit of its function: gcc may inline the head of a
  // function, with its entry, and give the rest, with its exit, a frame of its own.
  const bool innermost = found != kNoFrame && found + 1 == state->open.depth;
  if (found == kNoFrame ||
      (!innermost && is_another_call(stacks, state->open.frames[found].frame, cfa))) {
    // A coroutine may have been entered in another thread.
    if (state->coroutine != 0) return;
    if (state->open.depth == 0 || !was_off_meanwhile()) {
      write_named_exit(nesting, *state, key, state->open.depth, ticks);
    }
    return;
  }
  record_unwind(nesting, *state, found + 1, ticks);
  write_exit(nesting, *state, retval, ticks);
}

}  // namespace

bool enter_slow(uint64_t key, arctrace_shim_call call, uintptr_t here,
                const ArgsBody* args) {
  detect_borrower(here);
  const WriterCall writer_call(here);
  if (writer_call.refuses_record()) return false;
  call.flags |= named_frame_flags(key);
  const uint64_t ticks = session_ticks();
  const MachineFrame frame(call);
  cache_current_stack(writer_call, frame.cfa != 0 ? frame.cfa : here, ticks);
  if (may_have_open_frames(thread_local_state) && frame.cfa != 0) {
    begin_with_open_frames(writer_call, call, true, ticks);
  }
  bool entered;
  if (filter_is_active()) {
    entered = enter_filtered(writer_call, key, frame, call, ticks, args);
  } else {
    const ThreadState* state = thread_local_state.state;
    if (state != nullptr && frame.cfa != 0) {
      leave_frames(writer_call, key, frame, call, ticks);
    }
    entered =
        write_enter(writer_call, key, ticks, args,
                    [&](ThreadState& to, uint32_t at) { to.open.store(at, key, frame); });
  }
  if (entered && args != nullptr) {
    write_args(writer_call, ARCTRACE_TYPE_ARGUMENTS, *args, ticks);
  }
  return entered;
}

bool enter_stub_slow(uint64_t key, StubCall call) {
  const bool is_entered =
      fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
      enter_fast(
          OwnBlock{kNowhereElse}, key, call.here(),
          [&](const ThreadState& state, const OpenFrame* to) ARCTRACE_INLINED {
            return is_known_stub_call_in_found(state, to, call, *call.return_slot);
          },
          [&](OpenFrame& to, uint64_t its_key)
              ARCTRACE_INLINED { to.store(its_key, call.frame(*call.return_slot)); });
  if (is_entered) return true;
  return enter_slow(key, call.described(), call.here(), nullptr);
}

void begin_before_exit(const arctrace_shim_call& call) {
  const WriterCall writer_call(call.stack_pointer);
  if (writer_call.refused()) return;  // the lost record will be counted
  begin_with_open_frames(writer_call, call, false, session_ticks());
}

void exit_slow(uint64_t key, uintptr_t cfa, uintptr_t here, const ArgsBody* retval) {
  const WriterCall writer_call(here);
  if (writer_call.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  cache_current_stack(writer_call, cfa != 0 ? cfa : here, ticks);
  ThreadState* state = thread_local_state.state;
  if (filter_is_active() && state != nullptr && state->attached) {
    report_long_calls(writer_call, *state, ticks);
  }
  const OpenFrame* innermost = state != nullptr ? state->open.innermost(key) : nullptr;
  if (innermost != nullptr && (cfa == 0 || innermost->frame.cfa == cfa)) {
    write_exit(writer_call, *state, retval, ticks);
  } else {
    leave_another(writer_call, key, cfa, ticks, retval);
  }
  if (filter_is_active()) keep_filter_context(thread_local_state);
}

bool exit_innermost_slow(uint64_t key, uintptr_t stack_pointer, const ArgsBody* retval) {
  const WriterCall writer_call(stack_pointer);
  if (writer_call.refuses_record()) return true;
  const uint64_t ticks = session_ticks();
  cache_current_stack(writer_call, stack_pointer, ticks);
  ThreadState* state = thread_local_state.state;
  const OpenFrame* innermost = state != nullptr ? state->open.innermost(key) : nullptr;
  if (innermost == nullptr || innermost->frame.stack_pointer != low_half(stack_pointer)) {
    return false;
  }
  if (filter_is_active()) report_long_calls(writer_call, *state, ticks);
  write_exit(writer_call, *state, retval, ticks);
  if (filter_is_active()) keep_filter_context(thread_local_state);
  return true;
}

bool leave_exit_hooked_slow(uintptr_t return_slot) {
  const WriterCall writer_call(return_slot);
  if (writer_call.refuses_record()) return true;
  const uint64_t ticks = session_ticks();
  const uintptr_t cfa = return_slot + sizeof(uintptr_t);
  cache_current_stack(writer_call, cfa, ticks);
  ThreadState* state = thread_local_state.state;
  if (state == nullptr) return false;
  uint32_t depth = state->open.stored();
  const auto is_one = [&](const MachineFrame& frame) {
    return frame.cfa == cfa && frame.has(ARCTRACE_SHIM_EXIT_HOOKED);
  };
  while (depth > 0 && !is_one(state->open.frames[depth - 1].frame)) --depth;
  // Frames that are only counted are not exit-hooked.
  if (depth == 0) return state->open.depth >= OpenFrames::kMax;
  if (filter_is_active()) report_long_calls(writer_call, *state, ticks);
  record_unwind(writer_call, *state, depth, ticks);
  write_exit(writer_call, *state, nullptr, ticks);
  if (filter_is_active()) keep_filter_context(thread_local_state);
  return true;
}

bool is_open_frame(uint64_t key, uintptr_t cfa) {
  const ThreadState* state = thread_local_state.state;
  if (state == nullptr) return false;
  for (uint32_t i = state->open.stored(); i > 0; --i) {
    const OpenFrame& open = state->open.frames[i - 1];
    if (open.key == key && open.frame.cfa == cfa) return true;
  }
  return false;
}

bool is_filtered_out_slow(uint64_t key, arctrace_shim_call call) {
  const WriterCall writer_call(call.stack_pointer);
  if (writer_call.refused()) return false;  // the lost record will be counted
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(writer_call, ticks);
  if (state == nullptr) return false;
  const MachineFrame frame(call);
  cache_current_stack(writer_call, frame.cfa, ticks);
  if (may_have_open_frames(thread_local_state)) {
    begin_with_open_frames(writer_call, call, true, ticks);
  }
  const FilteredFrame filtered = filter_call(writer_call, key, frame, call, ticks);
  if (!is_without_effect(thread_local_state, filtered)) return false;
  keep_filter_context(thread_local_state);
  return true;
}

void record_abandoned_below(uintptr_t stack_pointer) {
  ThreadState* state = thread_local_state.state;
  if (state == nullptr || state->open.depth == 0) return;
  const WriterCall writer_call;
  // A handler's jump may leave the writer call that it interrupts: the next one sees
  // that.
  if (writer_call.refused() || writer_call.nested()) return;
  const uint64_t ticks = session_ticks();
  cache_current_stack(writer_call, stack_pointer, ticks);
  if (filter_is_active()) report_long_calls(writer_call, *state, ticks);
  // The CFA of a function that is called there is the stack pointer itself.
  const MachineFrame above(stack_pointer + 1);
  record_unwind(writer_call, *state,
                depth_above(thread_local_state.stacks, state->open, above), ticks);
  if (filter_is_active()) keep_filter_context(thread_local_state);
}

}  // namespace arctrace::writer
