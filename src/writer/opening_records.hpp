// The records with which a thread begins in a block, LOST and STACK, and what a thread
// does when blocks run short: it wakes the collector, and does not search again in vain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/handout.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/reservation.hpp"

namespace arctrace {

// To be called before the frames are read for a STACK record: a signal handler may lose a
// change of theirs from then on.
inline void clear_stack_differs(ThreadState& state) {
  state.loss.stack_differs = false;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// The body of a STACK record with `count` frames, in bytes.
constexpr uint32_t stack_body_size(uint32_t count) {
  return static_cast<uint32_t>(sizeof(arctrace_stack_body) + count * sizeof(uint64_t));
}

// The same as `state` needs it: a coroutine's has its number after the frames.
inline uint32_t stack_body_size(const ThreadState& state, uint32_t count) {
  const size_t number = state.coroutine != 0 ? sizeof(uint32_t) : 0;
  return stack_body_size(count) + static_cast<uint32_t>(number);
}

// The header of a block of this thread that begins at `ticks`.
inline BlockIdentity block_identity(const ThreadState& state, const ProcessState& process,
                                    arctrace_block_form form,
                                    arctrace_block_class block_class, uint64_t ticks) {
  return {form,        block_class,    state.slot.writer,  process.id,
          process.pid, state.slot.tid, state.block.serial, ticks};
}

// STACK may take a quarter of a block, so that deep stacks leave room for records.
uint32_t stack_room();

// How many frames a STACK record with a body of at most `room` bytes can report.
uint32_t reportable_frames(const ThreadState& state, uint32_t room);

// A STACK record's body, with the innermost `count` frames.
void fill_stack(std::byte* body, const ThreadState& state, uint32_t count);

// That part of it which a COROUTINE record has, too.
void fill_frames(std::byte* body, const ThreadState& state, uint32_t count);

void fill_lost(std::byte* body, const Losses& losses, const ThreadState& state);

// Wakes the collector if more blocks are in use than the high-water mark: one writer does
// so, at most once in each of its rounds.
void wake_past_mark();

// To be called when the thread has found no block; `freed` is control.freed from before
// the search.
void note_no_block(ThreadState& state, uint64_t freed);

// Whether no block has become free since the thread found none: then it need not ask.
bool is_known_empty(const ThreadState& state);

}  // namespace arctrace
