// Claims of work that one thread of the process at a time does, while others do not wait
// for it. A signal handler's jump may abandon it; the thread's next writer call sees
// that, and gives up what it had claimed.
#pragma once

#include <cstdint>

#include "src/process/process_identity.hpp"

namespace arctrace::writer {

enum class Work : uint8_t {
  kExamineFullBlock,    // src/writer/exclusive_records.cpp
  kCompactDefinitions,  // src/writer/definitions.cpp
};

// Claims the work for the thread with this writer identity. False: a thread has it,
// perhaps this one, which the call has interrupted. Claims of the parent's threads do not
// count in a fork child.
bool claim_work(Work work, const ProcessState& process, uint32_t writer);

// REQUIRES: the thread has claimed the work. Release, matches the acquire of the next
// claim.
void end_work(Work work);

// Ends all work that the thread has claimed.
void abandon_work(const ProcessState& process, uint32_t writer);

}  // namespace arctrace::writer
