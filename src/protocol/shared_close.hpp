// SHARED -> CLOSED: a writer closes a shared block that it finds full, the collector one
// that is abandoned.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"

namespace arctrace {

// In overwrite mode a closed block may be taken, so it counts as freed: a writer that
// found no block searches again when the count has changed.
template <class A>
void count_closed(const BufferView& view) {
  if (view.geometry().mode == ARCTRACE_MODE_OVERWRITE) {
    A::fetch_add_relaxed(view.control().freed, uint64_t{1});
  }
}

// Makes all later reservations in the block fail, then changes SHARED -> CLOSED if the
// block still has that generation. Any process may call it, any number of times.
template <class A>
void close_shared(const BufferView& view, uint32_t index, uint32_t generation) {
  arctrace_block_header& header = view.block_header(index);
  // G1 acq_rel: every earlier reservation is visible, with its writer's name.
  A::fetch_add_acq_rel(header.next, uint64_t{view.geometry().block_size});
  uint64_t seen = A::load_acquire(header.state);
  const BlockState state = BlockState::unpack(seen);
  if (state.phase != ARCTRACE_PHASE_SHARED || state.generation != generation) return;
  if (A::compare_exchange_acq_rel(header.state, seen,
                                  state.with(ARCTRACE_PHASE_CLOSED).pack())) {
    count_closed<A>(view);
  }
}

}  // namespace arctrace
