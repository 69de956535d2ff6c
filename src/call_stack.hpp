// Function entry and exit: the writer's own view of its thread's open frames, from
// which exits are matched, jumps over frames are seen, and blocks say how they begin.
#pragma once

#include <cstdint>

#include "src/writer.hpp"

namespace arctrace {

// Records that the thread entered `key`. `location`: an address in its frame, 0 unknown.
void record_enter(uint64_t key, uintptr_t location);

// Records that the thread left `key`.
void record_exit(uint64_t key);

// Around a vfork child, which runs on its parent's stack and with its thread state.
void record_vfork_begin();
void record_vfork_end(uint32_t child_pid);

}  // namespace arctrace
