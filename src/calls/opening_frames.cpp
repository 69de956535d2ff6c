#include "src/calls/opening_frames.hpp"

#include <algorithm>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/calls/call_filter.hpp"
#include "src/calls/slow_path_stack.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/large_stack.hpp"
#include "src/process/process_identity.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {
namespace {

arctrace_shim_open_frames* finder;

// The frames that were found, innermost first, stored where those of the thread are kept.
struct Found {
  OpenFrames* open;
  uint32_t count = 0;
};

// The finder's arguments, and its answer.
struct Search {
  const arctrace_shim_call* call;
  int begins;
  arctrace_shim_memory own;
  const arctrace_shim_memory signal;
  Found found;
  uint32_t counted = 0;
};

void see_frame(void* context, const arctrace_shim_open_frame* frame) {
  auto& found = *static_cast<Found*>(context);
  if (found.count == OpenFrames::kMax) return;
  OpenFrame& to = found.open->frames[found.count++];
  to.key = frame->key;
  to.frame = {};
  to.frame.cfa = frame->cfa;
  to.frame.call_site = low_half(frame->call_site);
  to.frame.found_code_end = low_half(frame->end);
  to.frame.flags = frame->flags;
}

// Whether readers know nothing yet of the thread's frames.
bool has_not_begun(const ThreadState& state) {
  return state.block.serial == 0 && state.block.opening == 0 &&
         state.chain.stack_ticks == 0 && state.open.depth == 0 && state.coroutine == 0;
}

bool is_fork_child(uint64_t ticks) {
  const ProcessState* process = current_process(ticks);
  return process == nullptr || process->origin == ARCTRACE_ORIGIN_FORK;
}

void search(void* data) {
  auto& asked = *static_cast<Search*>(data);
  asked.counted = finder(asked.call, asked.begins, &asked.own, &asked.signal, see_frame,
                         &asked.found);
}

// Whether the filter asks for nothing that is called in the frames.
bool are_all_hidden(const ThreadState& state, uint32_t count) {
  if (IpcAtomics::load_relaxed(call_filter.filter_in_only) == 0) return false;
  return std::none_of(
      state.open.frames, state.open.frames + count,
      [](const OpenFrame& open) { return open.frame.has(ARCTRACE_SHIM_FILTERED_IN); });
}

// Applies the filter to the `count` frames, outermost first, as if they began now. They
// count as long enough for any minimum duration. The limit of depth counts from the
// innermost one on, or from the function that is asked for.
void filter_frames(Nesting nesting, ThreadLocal& local, uint32_t count, uint64_t ticks) {
  ThreadState& state = *local.state;
  report_long_calls(nesting, state, ticks);
  const bool is_any_asked_for = IpcAtomics::load_relaxed(call_filter.filter_in_only) != 0;
  for (uint32_t i = 0; i < count; ++i) {
    FilteredFrame filtered =
        filtered_frame(local, state.open.frames[i].frame.flags, ticks);
    if (!is_any_asked_for) filtered.inside.forget_level();
    if (filtered.reporting == FilteredFrame::Reporting::kWaiting) {
      filtered.reporting = FilteredFrame::Reporting::kReported;
    }
    state.filtered.frames[i] = filtered;
    state.open.depth = i + 1;
  }
}

}  // namespace

constinit uint32_t joined_running = 0;

void set_open_frames_finder(arctrace_shim_open_frames* find) {
  finder = find;
  expect_vfork_children();
  IpcAtomics::store_release(joined_running, IpcAtomics::load_relaxed(joined_running) + 1);
}

void begin_with_open_frames(Nesting nesting, const arctrace_shim_call& call, bool begins,
                            uint64_t ticks) {
  ThreadLocal& local = thread_local_state;
  if (nesting.nested() || local.is_vforking || storage_is_shared() ||
      !may_call_kernel()) {
    return;
  }
  ThreadState* state = attached_thread(nesting, ticks);
  if (state == nullptr) return;
  begin_without_frames(local);
  // The open frames of a fork child are its parent's.
  if (!has_not_begun(*state) || is_fork_child(ticks)) return;
  // A handler would put its own frames where these are collected.
  const sys::SignalsBlocked blocked;
  ThreadStacks& stacks = local.stacks;
  if (!stacks.is_signal_known) ask_for_signal_stack(local);
  Search asked{&call,
               begins ? 1 : 0,
               {stacks.own.low, stacks.own.high},
               {stacks.signal.low, stacks.signal.high},
               {&state->open}};
  // A handler's stack may be too small for the search.
  run_on_large_stack(search, &asked);
  stacks.own = {asked.own.low, asked.own.high};
  if (local.calls != nullptr) local.calls->own = stacks.own;
  const uint32_t count = std::min(asked.counted, asked.found.count);
  std::reverse(state->open.frames, state->open.frames + count);
  fill_zero(state->filtered.frames, count * sizeof *state->filtered.frames);
  if (are_all_hidden(*state, count)) return;
  fill_zero(state->filtered.frames, count * sizeof *state->filtered.frames);
  if (filter_is_active()) filter_frames(nesting, local, count, ticks);
  state->open.depth = count;
  state->begins_in_frames = state->filtered.reported_frames(count) != 0;
}

}  // namespace arctrace::writer
