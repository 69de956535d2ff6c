// How many blocks are in use, by two counts that only grow.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace {

// Blocks that were taken and not freed, or in overwrite mode not closed. Give or take
// those whose taker died, or jumped away, between a step and its count: where `taken`
// lacks such a step the difference may be below 0, and then none is in use.
template <class A>
uint64_t blocks_in_use(arctrace_control& control) {
  const uint64_t freed = A::load_relaxed(control.freed);
  const uint64_t used = A::load_relaxed(control.taken) - freed;
  return static_cast<int64_t>(used) < 0 ? 0 : used;
}

}  // namespace arctrace
