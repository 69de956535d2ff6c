// Applies the call filter to the open frames of a thread, and records and publishes calls
// that wait for their duration.
#include "src/calls/call_filter.hpp"

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/process/gate.hpp"
#include "src/process/session.hpp"
#include "src/writer/in_place_records.hpp"
#include "src/writer/record.hpp"
#include "src/writer/shared_records.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace::writer {

CallFilter call_filter{};

namespace {

using Reporting = FilteredFrame::Reporting;

// The size in bytes of the saved arguments of frame `i`, which waits.
uint32_t waiting_args_size(const ThreadState& state, uint32_t i) {
  const uint32_t begin = state.filtered.args_begin(i);
  const uint32_t end = state.filtered.frames[i].args_end;
  return end <= begin ? 0 : (end - begin) * 4;
}

void copy_waiting_args(const ThreadState& state, uint32_t i, std::byte* to) {
  copy_bytes(to, state.filtered.waiting_args + state.filtered.args_begin(i),
             waiting_args_size(state, i));
}

void report_waiting_call(Nesting nesting, ThreadState& state, uint32_t i) {
  ThreadLocal& local = thread_local_state;
  const uint64_t ticks = state.filtered.frames[i].ticks;
  const uint32_t args_size = waiting_args_size(state, i);
  const bool has_locks = state.filtered.frames[i].has_locks;
  constexpr uint32_t kFrameSize = sizeof(arctrace_frame_body);
  const Reservation record = reserve(nesting, ARCTRACE_TYPE_ENTER,
                                     kFrameSize + (has_locks ? args_size : 0), ticks);
  if (record.word0 != nullptr) {
    part_at<arctrace_frame_body>(record.body).key = state.open.frames[i].key;
    if (has_locks) copy_waiting_args(state, i, record.body + kFrameSize);
    local.reporting = i + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    announce(local, {record.word0, state.open.depth});
    commit(record);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  state.filtered.frames[i].reporting = Reporting::kReported;
  finish_change(local);
  local.reporting = 0;
  if (record.word0 == nullptr || has_locks || args_size == 0) return;
  write_record(nesting, ARCTRACE_TYPE_ARGUMENTS, args_size, ticks,
               [&](std::byte* body) { copy_waiting_args(state, i, body); });
}

// Records the waiting calls that were entered up to `entered` ticks.
void report_waiting_calls(Nesting nesting, ThreadState& state, uint64_t entered) {
  uint32_t i = state.filtered.first_waiting - 1;
  // Records that are written meanwhile must not wait for these calls.
  state.filtered.first_waiting = 0;
  for (; i < state.open.depth && i < OpenFrames::kMax; ++i) {
    const FilteredFrame& frame = state.filtered.frames[i];
    if (frame.reporting != Reporting::kWaiting) continue;
    if (static_cast<int64_t>(frame.ticks - entered) > 0) {
      state.filtered.first_waiting = i + 1;
      break;
    }
    report_waiting_call(nesting, state, i);
  }
  take_back_published_calls(state);
}

}  // namespace

void set_call_filter(const arctrace_shim_filter& filter) {
  const auto& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t rate = header.ticks_per_second;
  call_filter.filter_in_only = filter.filter_in_only;
  call_filter.filter_in_only_at_start = filter.filter_in_only;
  call_filter.depth_max = filter.depth_max;
  call_filter.ticks_min =
      filter.min_ns / kSecond * rate + filter.min_ns % kSecond * rate / kSecond;
  set_report_waiting_calls([](Nesting nesting, ThreadState& state) {
    report_waiting_calls(nesting, state, session_ticks());
  });
  call_filter.is_active = 1;
  filter_fast_path();
}

void reset_call_filter() { call_filter = {}; }

void set_live_filter(uint32_t number, bool filter_in_only) {
  IpcAtomics::store_relaxed(call_filter.filter_in_only, filter_in_only ? 1U : 0U);
  IpcAtomics::store_relaxed(call_filter.number, number);
  // Without any other filter, the other members need not be visible first.
  IpcAtomics::store_relaxed(call_filter.is_active, uint32_t{1});
  filter_fast_path();
}

bool may_report_deeper(const ThreadLocal& local, uint32_t flags) {
  constexpr uint32_t kExcluded = ARCTRACE_SHIM_NOTRACE | ARCTRACE_SHIM_HIDDEN;
  const FilterContext& inside = local.filter_context;
  if (inside.is_notrace() || (flags & kExcluded) != 0) return false;
  if ((flags & ARCTRACE_SHIM_FILTERED_IN) != 0) return true;
  const bool filter_in_only = IpcAtomics::load_relaxed(call_filter.filter_in_only) != 0;
  return (inside.is_filtered_in() || !filter_in_only) &&
         (call_filter.depth_max == 0 || inside.level() < call_filter.depth_max);
}

void keep_args(ThreadState& state, FilteredFrame& frame, const ArgsBody& body) {
  const uint32_t words = body.size / 4;
  const uint32_t begin = frame.args_end;
  if (words > FilteredFrames::kWaitingArgsMax - begin) return;
  copy_bytes(state.filtered.waiting_args + begin, body.bytes, body.size);
  frame.args_end = static_cast<uint16_t>(begin + words);
  frame.has_locks = body.are_locks;
}

bool unknown_exit_is_reported(const ThreadLocal& local) {
  if (!filter_is_active()) return true;
  const FilterContext inside = context_here(local);
  const bool filter_in_only = IpcAtomics::load_relaxed(call_filter.filter_in_only) != 0;
  return !inside.is_notrace() && (inside.is_filtered_in() || !filter_in_only) &&
         call_filter.depth_max == 0 && call_filter.ticks_min == 0;
}

void keep_filter_context(ThreadLocal& local) {
  ThreadState* state = local.state;
  if (state == nullptr || !state->attached) return;
  if (state->published.count != 0 && local.nesting == 0) {
    take_back_published_calls(*state);
  }
  if (state->open.depth > OpenFrames::kMax) return;
  local.filter_context = context_here(local);
}

void report_long_calls(Nesting nesting, ThreadState& state, uint64_t ticks) {
  if (!state.filtered.seen) {
    state.filtered.reported_depth = state.open.depth;
    state.filtered.may_wait = call_filter.ticks_min != 0;
    state.filtered.seen = true;
  }
  if (state.filtered.first_waiting == 0 || nesting.nested()) return;
  report_waiting_calls(nesting, state, ticks - call_filter.ticks_min);
}

void report_all_calls(Nesting nesting, ThreadState& state) {
  if (state.filtered.first_waiting == 0) return;
  report_waiting_calls(nesting, state, session_ticks());
}

void report_long_calls_at_end() {
  if (!filter_is_active()) return;
  const WriterCall writer_call;
  ThreadState* state = thread_local_state.state;
  if (writer_call.refused() || state == nullptr || !state->attached) return;
  report_long_calls(writer_call, *state, session_ticks());
}

namespace {

constexpr uint32_t kBodySize = sizeof(arctrace_waiting_body) +
                               ARCTRACE_WAITING_CALLS_MAX * sizeof(arctrace_waiting_call);

arctrace_waiting_body& body_of(const PublishedCalls& published) {
  return part_at<arctrace_waiting_body>(published.body);
}

arctrace_waiting_call& entry(const PublishedCalls& published, uint32_t i) {
  return part_at<arctrace_waiting_call>(published.body + sizeof(arctrace_waiting_body) +
                                        i * sizeof(arctrace_waiting_call));
}

// A fork child, which may go on with a call of its parent, finds its state wiped, and
// must not change its parent's record.
bool is_wiped(const ThreadState& state) { return state.slot.is_wiped(); }

void set_count(ThreadState& state, uint32_t count) {
  if (is_wiped(state)) return;
  state.published.count = count;
  // T1 release: the entries, and what the thread has written before, are visible.
  IpcAtomics::store_release(
      word_at(state.published.body + offsetof(arctrace_waiting_body, count)), count);
}

// Whether the published frame `i` still waits.
bool still_waits(const ThreadState& state, uint32_t i) {
  const uint32_t at = state.published.frames[i];
  return at < state.open.depth &&
         state.filtered.frames[at].reporting == FilteredFrame::Reporting::kWaiting &&
         state.filtered.frames[at].ticks == state.published.ticks[i];
}

uint64_t written_by_owner(const ThreadState& state) {
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  return IpcAtomics::load_relaxed(slot.written) +
         IpcAtomics::load_relaxed(slot.written_shared) -
         IpcAtomics::load_relaxed(slot.written_before);
}

void add(ThreadState& state, uint32_t at) {
  PublishedCalls& published = state.published;
  const uint32_t count = published.count;
  if (count >= ARCTRACE_WAITING_CALLS_MAX || is_wiped(state)) return;
  published.frames[count] = at;
  published.ticks[count] = state.filtered.frames[at].ticks;
  arctrace_waiting_call& call = entry(published, count);
  call.key = state.open.frames[at].key;
  call.ticks = published.ticks[count];
  if (count == 0) body_of(published).written = written_by_owner(state);
  set_count(state, count + 1);
}

// Drops the thread's record: with an earlier definitions_round, it is not in the files of
// later collectors.
void drop_record(ThreadState& state) {
  if (state.published.body == nullptr) return;
  set_count(state, 0);
  unpin_block(state, state.published.pin);
  state.published.body = nullptr;
}

// False: there is no space for the record.
bool has_record(ThreadState& state, uint64_t ticks, uint64_t ticks_min) {
  PublishedCalls& published = state.published;
  if (has_waiting_record(state)) return true;
  drop_record(state);
  const uint64_t freed = IpcAtomics::load_relaxed(session.view.control().freed);
  if (published.freed_seen == freed + 1) return false;
  published.freed_seen = freed + 1;
  ProcessState* process = current_process(ticks);
  if (process == nullptr || IpcAtomics::load_acquire(process->defined) == 0 ||
      ARCTRACE_FULL_HEAD_SIZE + kBodySize > record_length_max(session.view.geometry())) {
    return false;
  }
  const Reservation record =
      reserve_definition(state, *process, ARCTRACE_TYPE_WAITING, kBodySize, ticks);
  if (record.word0 == nullptr) return false;
  fill_zero(record.body, kBodySize);
  auto& body = part_at<arctrace_waiting_body>(record.body);
  body.process = process->id;
  body.writer = state.slot.writer;
  body.ticks_min = ticks_min;
  // The block is pinned before its shared name goes, because the thread changes the
  // record as long as it lives.
  const uint32_t pin = pin_block(state, record.block);
  commit(record);
  if (pin == kNotPinned) return false;
  published.pin = pin;
  published.generation = state.definitions.thread_generation;
  published.body = record.body;
  return true;
}

}  // namespace

void publish_waiting_call(ThreadState& state, uint32_t at, uint64_t ticks_min) {
  if (at >= OpenFrames::kMax) return;
  if (has_record(state, state.filtered.frames[at].ticks, ticks_min)) add(state, at);
}

void take_back_published_calls(ThreadState& state) {
  const uint32_t before = state.published.count;
  if (before == 0) return;
  uint32_t count = before;
  while (count > 0 && !still_waits(state, count - 1)) --count;
  if (count != before) set_count(state, count);
  if (count == 0 || still_waits(state, 0)) return;
  // The outermost calls have been recorded, so there is space for others further in.
  const uint32_t innermost = state.published.frames[count - 1];
  set_count(state, 0);
  const uint32_t depth = state.open.stored();
  for (uint32_t at = state.filtered.first_waiting; at > 0 && at <= depth; ++at) {
    if (state.published.count == ARCTRACE_WAITING_CALLS_MAX && at > innermost) break;
    if (state.filtered.frames[at - 1].reporting == FilteredFrame::Reporting::kWaiting) {
      add(state, at - 1);
    }
  }
}

}  // namespace arctrace::writer
