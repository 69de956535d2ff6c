// Work that one thread of the process at a time does, without waiting for another one. A
// thread may leave it by a signal handler that jumps; its next writer call sees that, and
// gives up what it had claimed.
#pragma once

#include <cstdint>

#include "src/process/process_identity.hpp"

namespace arctrace {

enum class Work : uint8_t {
  kLookAtFullBlock,     // src/writer/full_blocks.cpp
  kCompactDefinitions,  // src/writer/definitions.cpp
};

// Claims it for the thread with this writer identity. False: a thread has it, perhaps
// this one, which the call has interrupted. What a thread of the parent has claimed does
// not count in a fork child.
bool claim_work(Work work, const ProcessState& process, uint32_t writer);

// REQUIRES: the thread has it. Release, matches the acquire of the next claim.
void end_work(Work work);

// Ends all work that the thread has claimed.
void abandon_work(const ProcessState& process, uint32_t writer);

}  // namespace arctrace
