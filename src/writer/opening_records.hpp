// The records with which a thread begins in a block, LOST and STACK; and the steps of a
// thread when blocks run short: it wakes the collector, and does not search again in
// vain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/handout.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/record.hpp"

namespace arctrace::writer {

// How many frames are open at a moment.
struct FramesState {
  uint64_t ticks;
  uint32_t open;
};

// The moment for the STACK record of an outermost call that was made at `ticks`. If
// signal handlers that interrupted the call have entered frames that stay open, or ended
// frames that were open before, it is later than `ticks`, and than the records that they
// had written before. Otherwise readers would take the STACK for older than those
// records.
FramesState frames_state(const ThreadState& state, uint64_t ticks);

// The state at one moment that LOST and STACK records have.
struct OpeningState {
  FramesState frames;
  CountedLosses losses;  // until then
  uint64_t since_ticks;  // of losses that no LOST record counts yet
};

// The moment for a call that was made at `ticks`, to be found before the LOST and STACK
// records that precede its record. It is later than `ticks` in the case of
// frames_state(), and also if signal handlers have lost changes of their frames. Losses
// of handlers from then on are for the next LOST and STACK. `pending` and `stack_differs`
// are cleared.
OpeningState opening_state(ThreadState& state, uint64_t ticks);

// The body of a STACK record with `count` frames, in bytes.
constexpr uint32_t stack_body_size(uint32_t count) {
  return static_cast<uint32_t>(sizeof(arctrace_stack_body) + count * sizeof(uint64_t));
}

// Whether the number of the stack follows its frames: for a coroutine's, and for frames
// that were open before the thread's first record.
inline bool stack_has_number(const ThreadState& state) {
  return state.coroutine != 0 || state.begins_in_frames;
}

// The size with the number, if `state` needs it.
inline uint32_t stack_body_size(const ThreadState& state, uint32_t count) {
  const size_t number = stack_has_number(state) ? sizeof(uint32_t) : 0;
  return stack_body_size(count) + static_cast<uint32_t>(number);
}

// The header of a block of this thread that begins at `ticks`.
inline BlockIdentity block_identity(const ThreadState& state, const ProcessState& process,
                                    arctrace_block_form form,
                                    arctrace_block_class block_class, uint64_t ticks) {
  return {form,        block_class,    state.slot.writer,  process.id,
          process.pid, state.slot.tid, state.block.serial, ticks};
}

// The space for STACK: a quarter of a block, so that with deep stacks there is space for
// records.
uint32_t stack_record_space();

// The contents of a STACK record: that the outermost `open` frames are open, and which
// the innermost `count` of them are that readers may know.
struct StackReport {
  uint32_t open;
  uint32_t count;
};

// The contents of a STACK record with a body of at most `space` bytes about the outermost
// `open` frames.
StackReport reportable_frames(const ThreadState& state, uint32_t open, uint32_t space);

// Fills in a STACK record's body.
void fill_stack(std::byte* body, ThreadState& state, const StackReport& report);

// Fills in the part of the body that a COROUTINE record has, too.
void fill_frames(std::byte* body, const ThreadState& state, const StackReport& report);

void fill_lost(std::byte* body, const Losses& losses, uint64_t since_ticks);

// Notes that there was no space for LOST records: they are written later.
inline void put_off_losses(ThreadState& state, const OpeningState& opening) {
  state.loss.pending = true;
  // A signal handler's loss may have set a later time.
  state.loss.since_ticks = opening.since_ticks;
}

// Wakes the collector if more blocks are in use than the high-water mark: one writer does
// so, at most once in each of the collector's passes.
void wake_past_mark();

// To be called when the thread has found no block; `freed` is control.freed from before
// the search.
void note_no_block(ThreadState& state, uint64_t freed);

// Whether no block has become free since the thread found none: then it need not search.
bool is_known_empty(const ThreadState& state);

}  // namespace arctrace::writer
