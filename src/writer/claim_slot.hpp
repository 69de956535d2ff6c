// How a thread joins: private state, identity, a slot with a robust lock.
#pragma once

#include <cstdint>

#include "src/writer/writer.hpp"

namespace arctrace {

// Attaches the calling thread and writes its definitions. Null: no session, no slot, no
// memory. REQUIRES: not attached, scope not nested.
ThreadState* attach_thread(ScopeKind scope, uint64_t ticks);

}  // namespace arctrace
