// Reserves events in place, and commits or discards them.
#include "src/writer/in_place_records.hpp"

#include <arctrace/arctrace.h>

#include "src/process/session.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/record.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace::writer {
namespace {

constexpr uint32_t kEventSize = sizeof(arctrace_event_body);

// Claims one of the thread's places for records that are reserved in place, in one step,
// because a signal handler may claim one too. The first place is for calls that interrupt
// none (reserve_first()), and for events without a filter of fields: what is committed
// there is not checked.
InPlaceRecord* claim_place(bool may_be_first, ThreadState& state) {
  for (uint32_t i = may_be_first ? 0 : 1; i < ARCTRACE_HELD_COUNT; ++i) {
    InPlaceRecord& place = state.places[i];
    uint64_t seen = InPlaceRecord::kUnused;
    if (IpcAtomics::compare_exchange_acq_rel(place.payload, seen,
                                             InPlaceRecord::kClaimed)) {
      return &place;
    }
  }
  return nullptr;
}

// The word of the thread's slot that names the block of `place`. A fork child that goes
// on with a call of its parent must not change its parent's word.
uint32_t& name_of(ThreadState& state, const InPlaceRecord& place) {
  return state.slot.slot().held[&place - state.places];
}

// Stores `payload` last, because this store hands `place` over to other calls.
void hand_over(InPlaceRecord& place, uint64_t payload) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place.payload = payload;
}

// Whether the filter admits the event, which is filled in. `length`: of its record, which
// begins at `head`.
bool is_admitted(const std::byte* head, uint32_t length, const void* payload) {
  const auto* from = static_cast<const std::byte*>(payload);
  const uint32_t event =
      reinterpret_cast<const arctrace_event_body*>(from - kEventSize)->event;
  return fields_are_admitted(event, {from, head + length});
}

}  // namespace

__attribute__((noinline)) void* reserve_in_place(uint32_t event, size_t size,
                                                 uintptr_t here) {
  const EventVerdict verdict = event_verdict_now(event);
  if (verdict == EventVerdict::kExcluded) return nullptr;
  const bool is_by_fields = verdict == EventVerdict::kByFields;
  const WriterCall writer_call(here);
  if (writer_call.refuses_record()) return nullptr;
  const uint64_t ticks = session_ticks();
  if (size > ARCTRACE_PAYLOAD_MAX) {
    reserve_impossible(writer_call, ticks);
    return nullptr;
  }
  ThreadState* state = recording_thread(writer_call, ticks);
  if (state == nullptr) return nullptr;
  const Nesting nesting = writer_call;
  InPlaceRecord* place = claim_place(!nesting.nested() && !is_by_fields, *state);
  if (place == nullptr) {
    count_lost(state->slot.slot(), *state, ARCTRACE_LOST_NESTED, ticks);
    return nullptr;
  }
  const uint32_t padded = padded_size(static_cast<uint32_t>(size));
  const Reservation record =
      reserve(writer_call, ARCTRACE_TYPE_EVENT, kEventSize + padded, ticks);
  if (record.word0 == nullptr) {
    hand_over(*place, InPlaceRecord::kUnused);
    return nullptr;
  }
  part_at<arctrace_event_body>(record.body).event = event;
  // The padding is in the last word.
  if (padded != size) word_at(record.body + kEventSize + padded - sizeof(uint32_t)) = 0;
  place->word0 = record.word0;
  place->committed = record.committed;
  place->is_by_fields = is_by_fields;
  // B4 release: the block is named as pinned before its shared name goes, or before its
  // owner can close it.
  IpcAtomics::store_release(name_of(*state, *place), record.block + 1);
  release(record);
  std::byte* payload = record.body + kEventSize;
  hand_over(*place, reinterpret_cast<uintptr_t>(payload));
  return payload;
}

uint32_t pin_block(ThreadState& state, uint32_t block) {
  InPlaceRecord* place = claim_place(true, state);
  if (place == nullptr) return kNotPinned;
  IpcAtomics::store_release(name_of(state, *place), block + 1);  // B4, as for a record
  hand_over(*place, InPlaceRecord::kOfBlock);
  return static_cast<uint32_t>(place - state.places);
}

void unpin_block(ThreadState& state, uint32_t pin) {
  IpcAtomics::store_release(name_of(state, state.places[pin]), uint32_t{0});  // F1
  hand_over(state.places[pin], InPlaceRecord::kUnused);
}

__attribute__((noinline)) void end_in_place(const void* payload, bool keep) {
  const WriterCall writer_call;
  ThreadState* state = thread_local_state.state;
  if (payload == nullptr || state == nullptr || !state->attached) return;
  for (InPlaceRecord& place : state->places) {
    // The head is read before `payload` is compared: a handler may fork, and in the child
    // the state is wiped.
    std::byte* const head = place.word0;
    const uint32_t committed = place.committed;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (place.payload != reinterpret_cast<uintptr_t>(payload)) continue;
    const uint32_t length = committed & ARCTRACE_LENGTH_MASK;
    keep = keep && (!place.is_by_fields || is_admitted(head, length, payload));
    const uint32_t word0 = keep ? committed : ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length);
    IpcAtomics::store_release(word_at(head), word0);  // I1
    if (!keep) {  // either count will do, because readers use their sum
      IpcAtomics::fetch_add_relaxed(state->slot.slot().written_shared, ~uint64_t{0});
    }
    IpcAtomics::store_release(name_of(*state, place), uint32_t{0});  // F1
    hand_over(place, InPlaceRecord::kUnused);
    return;
  }
}

}  // namespace arctrace::writer
