// Events whose payload the program fills in the buffer itself (arctrace_reserve), and
// then commits or discards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Room for `size` payload bytes of event `event`; null if there is none.
void* hold_record(uint32_t event, size_t size);

// Publishes the record as `keep` ? EVENT : PAD. A payload that is not this thread's is
// ignored (a fork child gets its parent's).
void settle_record(const void* payload, bool keep);

}  // namespace arctrace
