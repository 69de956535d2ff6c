// What a writing thread keeps in private memory: its place in its block and its open
// frames. States live in arenas that fork wipes (MADV_WIPEONFORK): a child finds zeros,
// so its first record takes the slow path and a new identity, however it was forked.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/handout.hpp"
#include "src/stack/frame_place.hpp"
#include "src/stack/pending_calls.hpp"

namespace arctrace {

struct OpenFrame {
  uint64_t key;  // function address or name key
  FramePlace place;
};

// What holds for the functions that are called in a frame (call_filter.hpp).
struct FilterScope {
  uint16_t level;    // frames that count for the depth limit
  bool is_chosen;    // in a chosen function
  bool is_left_out;  // in one that is not to be recorded with what it calls
  uint16_t round;    // of the choice by which that was said, its lower half
  bool operator==(const FilterScope&) const = default;
};

// Of an open frame, from when there is a call filter: zeros for those that were there
// before, of which readers were told.
struct FilteredFrame {
  enum class Telling : uint8_t { kTold, kHidden, kWaiting };
  uint64_t ticks;  // of its entry
  FilterScope inside;
  Telling telling;
  // Of its arguments, while it waits, in ThreadState::waiting_arguments, in words; they
  // begin where those of the frame around it end.
  uint16_t arguments_end;
};

// A record reserved in place (arctrace_reserve).
struct HeldRecord {
  static constexpr uint64_t kUnused = 0;
  static constexpr uint64_t kClaimed = 1;  // a call is at work on it
  uint64_t payload;                        // address, or one of these
  std::byte* word0;
  uint32_t committed;
};

struct ThreadState {
  static constexpr uint32_t kMaxFrames = ARCTRACE_OPEN_FRAMES_MAX;

  // Hot: the exclusive block. pos == end: none, or none yet.
  std::byte* pos;
  std::byte* end;
  uint64_t base_ticks;  // what the next record's delta counts from
  uint64_t* written;    // the slot's count of records in exclusive blocks
  uint32_t depth;       // open frames; beyond kMaxFrames only counted
  bool attached;        // has a slot in this process
  uint16_t slot_retry;  // records to lose before asking for a slot again
  // Index + 1 of an open frame before which none waits to be told (call_filter.hpp); 0:
  // none waits.
  uint32_t first_waiting;

  // Frames that were open when the filter was first seen, also beyond kMaxFrames: readers
  // were told of them.
  uint32_t told_depth;
  bool filter_seen;

  bool has_block;         // all of the block's state is in order
  bool known;             // what its records need has been defined once
  bool thread_defined;    // its THREAD record is written ...
  uint32_t thread_round;  // ... for this control.definitions_round
  bool stack_range_known;
  uint32_t slot;
  uint32_t writer;
  uint32_t tid;
  uint64_t serial;   // of the next exclusive block to be opened
  uint64_t opening;  // serial + 1: the thread owns that block already
  uint64_t start_ticks;
  Handout<IpcAtomics>::Taken block;
  uint64_t shared_block;  // name of the shared block that has our STACK (shared scope)

  bool is_opening() const { return opening == serial + 1; }

  // Loss: what is not yet said in LOST records, and when it began.
  uint64_t lost_since_ticks;
  uint64_t freed_seen;  // control.freed + 1 when no block was to be had: ask again later
  uint64_t full_chain;  // the shared chain's word at that time
  uint64_t lost_at_start[ARCTRACE_LOST_CAUSES];  // the slot's: of earlier owners
  bool loss_pending;

  ReturnStack* calls;  // in memory that fork keeps

  uint32_t vfork_depth;  // open frames when vfork was called
  HeldRecord held[ARCTRACE_HELD_COUNT];

  char name[64];  // as arctrace_thread_name gave it; empty: the kernel's

  // Liveness of this state itself, for reuse after the thread's death.
  uint32_t lock;
  uint32_t lock_padding[5];
  uint64_t robust_prev;
  uint64_t robust_next;

  OpenFrame frames[kMaxFrames];
  FilteredFrame filtered[kMaxFrames];  // of the same frames
  static constexpr uint32_t kWaitingArgumentsMax = 8192;
  uint32_t waiting_arguments[kWaitingArgumentsMax];  // bodies of ARGUMENTS records
};
static_assert(offsetof(ThreadState, robust_next) - offsetof(ThreadState, lock) ==
              ARCTRACE_ROBUST_NODE_OFFSET);

// A zeroed state for the calling thread, taken for its life; `current` itself if that is
// this thread's already, or was before a fork. Null if there is no memory or no robust
// list.
ThreadState* claim_thread_state(ThreadState* current, uint32_t tid);

// Makes memory for some hundred threads, before system calls are forbidden.
void prepare_thread_states();

// Forgets the calls of threads that are dead: another one's stack may be made where
// theirs was.
void forget_dead_threads_calls();

}  // namespace arctrace
