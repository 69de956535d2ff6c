// Events whose payload the program fills in the buffer itself (arctrace_reserve), and
// then commits or discards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Room for `size` payload bytes of event `event`; null if there is none, or the event is
// not recorded. `here` is the address for the writer call.
void* hold_record(uint32_t event, size_t size, uintptr_t here);

// Publishes the record as `keep` ? EVENT : PAD. A payload that is not this thread's is
// ignored (a fork child gets its parent's).
void settle_record(const void* payload, bool keep);

struct ThreadState;

// Keeps `block`, in which the thread has a record, from being recycled until
// unhold_block() or the thread's end. Returns what names it, or kNotHeld if the thread
// holds too many. REQUIRES: another word of the thread's slot names the block, and the
// writer call is the outermost one.
inline constexpr uint32_t kNotHeld = UINT32_MAX;
uint32_t hold_block(ThreadState& state, uint32_t block);
void unhold_block(ThreadState& state, uint32_t held);

}  // namespace arctrace
