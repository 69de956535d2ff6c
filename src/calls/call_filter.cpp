#include "src/calls/call_filter.hpp"

#include "src/base/memory.hpp"
#include "src/writer/stack_change.hpp"

namespace arctrace {

CallFilter call_filter{};

namespace {

using Telling = FilteredFrame::Telling;

// What holds where a function is entered now.
FilterScope scope_here(const ThreadLocal& local) {
  const ThreadState& state = *local.state;
  const FilterScope& around =
      state.depth == 0 ? local.filter_outermost : state.filtered[state.depth - 1].inside;
  const auto round = static_cast<uint16_t>(IpcAtomics::load_relaxed(call_filter.round));
  if (around.round == round) return around;
  FilterScope scope{};
  scope.round = round;
  return scope;
}

// Where a frame's arguments would begin, that has so many around it.
uint32_t arguments_begin(const ThreadState& state, uint32_t depth) {
  return depth == 0 ? 0 : state.filtered[depth - 1].arguments_end;
}

void tell_arguments(ScopeKind scope, const ThreadState& state, uint32_t i) {
  const uint32_t begin = arguments_begin(state, i);
  const uint32_t end = state.filtered[i].arguments_end;
  if (end <= begin) return;
  const uint32_t size = (end - begin) * 4;
  write_record(
      scope, ARCTRACE_TYPE_ARGUMENTS, size, state.filtered[i].ticks,
      [&](std::byte* body) { copy_bytes(body, state.waiting_arguments + begin, size); });
}

void tell(ScopeKind scope, ThreadState& state, uint32_t i) {
  ThreadLocal& local = scope.local();
  const Reservation record =
      reserve(scope, ARCTRACE_TYPE_ENTER, 8, state.filtered[i].ticks);
  if (record.word0 != nullptr) {
    store_u64(record.body, state.frames[i].key);
    announce(local, {record.word0, record.committed, state.depth});
    local.telling = i + 1;
    commit(scope, record);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  state.filtered[i].telling = Telling::kTold;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.telling = 0;
  if (record.word0 != nullptr) tell_arguments(scope, state, i);
}

// Those that were entered up to `entered`.
void tell_waiting(ScopeKind scope, ThreadState& state, uint64_t entered) {
  uint32_t i = state.first_waiting - 1;
  // What is recorded meanwhile must not wait for this.
  state.first_waiting = 0;
  for (; i < state.depth && i < ThreadState::kMaxFrames; ++i) {
    const FilteredFrame& frame = state.filtered[i];
    if (frame.telling != Telling::kWaiting) continue;
    if (static_cast<int64_t>(frame.ticks - entered) > 0) {
      state.first_waiting = i + 1;
      return;
    }
    tell(scope, state, i);
  }
}

}  // namespace

void set_call_filter(const arctrace_shim_filter& filter) {
  const auto& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t rate = header.ticks_per_second;
  call_filter.only_chosen = filter.only_chosen;
  call_filter.depth_max = filter.depth_max;
  call_filter.ticks_min =
      filter.min_ns / kSecond * rate + filter.min_ns % kSecond * rate / kSecond;
  call_filter.is_active = 1;
  IpcAtomics::store_relaxed(session.goes_straight, uint32_t{0});
}

void choose_live(uint32_t round, bool only_chosen) {
  IpcAtomics::store_relaxed(call_filter.only_chosen, only_chosen ? 1U : 0U);
  IpcAtomics::store_relaxed(call_filter.round, round);
  // Without any other filter, nothing depends on the others being seen first.
  IpcAtomics::store_relaxed(call_filter.is_active, uint32_t{1});
  IpcAtomics::store_relaxed(session.goes_straight, uint32_t{0});
}

FilteredFrame filtered_frame(const ThreadLocal& local, uint32_t flags, uint64_t ticks) {
  const auto has = [flags](arctrace_shim_call_flags flag) {
    return (flags & static_cast<uint32_t>(flag)) != 0;
  };
  FilteredFrame frame{ticks, {}, Telling::kHidden, 0};
  ThreadState& state = *local.state;
  if (state.depth >= ThreadState::kMaxFrames) {
    frame.inside.is_left_out = true;  // too deep to be kept
    if (state.told_depth > state.depth) state.told_depth = state.depth;
    return frame;
  }
  frame.arguments_end = static_cast<uint16_t>(arguments_begin(state, state.depth));
  FilterScope& inside = frame.inside;
  inside = scope_here(local);
  if (has(ARCTRACE_SHIM_LEFT_OUT)) inside.is_left_out = true;
  if (inside.is_left_out) return frame;
  if (has(ARCTRACE_SHIM_CHOSEN)) {
    inside.is_chosen = true;
    inside.level = 0;
  }
  const bool only_chosen = IpcAtomics::load_relaxed(call_filter.only_chosen) != 0;
  if ((only_chosen && !inside.is_chosen) || has(ARCTRACE_SHIM_HIDDEN)) {
    return frame;
  }
  if (call_filter.depth_max != 0 && inside.level >= call_filter.depth_max) return frame;
  if (inside.level < UINT16_MAX) ++inside.level;
  frame.telling = call_filter.ticks_min != 0 ? Telling::kWaiting : Telling::kTold;
  return frame;
}

void keep_arguments(ThreadState& state, FilteredFrame& frame, const ValuesBody& body) {
  const uint32_t words = body.size / 4;
  const uint32_t begin = frame.arguments_end;
  if (words > ThreadState::kWaitingArgumentsMax - begin) return;
  copy_bytes(state.waiting_arguments + begin, body.bytes, body.size);
  frame.arguments_end = static_cast<uint16_t>(begin + words);
}

bool is_without_effect(const ThreadLocal& local, const FilteredFrame& frame) {
  return frame.telling == Telling::kHidden &&
         (local.state->depth >= ThreadState::kMaxFrames ||
          frame.inside == scope_here(local));
}

uint32_t told_frames(const ThreadState& state, uint32_t depth) {
  if (!filter_is_active() || !state.filter_seen) return depth;
  uint32_t told = 0;
  for (uint32_t i = 0; i < depth && i < ThreadState::kMaxFrames; ++i) {
    if (state.filtered[i].telling == Telling::kTold) ++told;
  }
  const uint32_t deep = depth < state.told_depth ? depth : state.told_depth;
  return deep > ThreadState::kMaxFrames ? told + deep - ThreadState::kMaxFrames : told;
}

bool unknown_exit_is_told(const ThreadLocal& local) {
  if (!filter_is_active()) return true;
  const FilterScope& inside = local.filter_outermost;
  const bool only_chosen = IpcAtomics::load_relaxed(call_filter.only_chosen) != 0;
  return !inside.is_left_out && (inside.is_chosen || !only_chosen) &&
         call_filter.depth_max == 0 && call_filter.ticks_min == 0;
}

void note_filter_scope(ThreadLocal& local) {
  const ThreadState* state = local.state;
  if (state == nullptr || !state->attached || state->depth > ThreadState::kMaxFrames)
    return;
  local.filter_scope = scope_here(local);
}

void tell_long_calls(ScopeKind scope, ThreadState& state, uint64_t ticks) {
  if (!state.filter_seen) {
    state.told_depth = state.depth;
    state.filter_seen = true;
  }
  if (state.first_waiting == 0 || scope.nested()) return;
  tell_waiting(scope, state, ticks - call_filter.ticks_min);
}

void tell_all_calls(ScopeKind scope, ThreadState& state) {
  tell_waiting(scope, state, session_ticks());
}

}  // namespace arctrace
