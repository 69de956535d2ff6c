#include "src/calls/waiting_calls.hpp"

#include "src/base/memory.hpp"
#include "src/process/session.hpp"
#include "src/writer/commit.hpp"
#include "src/writer/held_records.hpp"
#include "src/writer/shared_records.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace {
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

// The record of an earlier definitions_round is not in the files of later collectors.
void drop_record(ThreadState& state) {
  if (state.published.body == nullptr) return;
  set_count(state, 0);
  unhold_block(state, state.published.held);
  state.published.body = nullptr;
}

// False: there is no room for the record.
bool has_record(ThreadState& state, uint64_t ticks, uint64_t ticks_min) {
  PublishedCalls& published = state.published;
  if (published.round != state.definitions.thread_round) drop_record(state);
  if (published.body != nullptr) return true;
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
  // Before the block's shared name goes: the thread changes the record as long as it
  // lives.
  const uint32_t held = hold_block(state, record.block);
  commit(record);
  if (held == kNotHeld) return false;
  published.held = held;
  published.round = state.definitions.thread_round;
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
  // The outermost ones have been reported: there is room for others further in.
  const uint32_t innermost = state.published.frames[count - 1];
  set_count(state, 0);
  const uint32_t depth = state.open.kept();
  for (uint32_t at = state.filtered.first_waiting; at > 0 && at <= depth; ++at) {
    if (state.published.count == ARCTRACE_WAITING_CALLS_MAX && at > innermost) break;
    if (state.filtered.frames[at - 1].reporting == FilteredFrame::Reporting::kWaiting) {
      add(state, at - 1);
    }
  }
}

}  // namespace arctrace
