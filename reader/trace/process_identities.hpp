// Which identities of a trace are one process of the kernel's. A process has another
// identity for each program that it executes; the recorder counts by the same rule
// (ProgramChanges in src/recorder/drain/definition_notes.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

// Returns the identities of each process, in the order of their times; the processes are
// in the order of their first identities' times. Takes time in proportion to n log n.
std::vector<std::vector<ProcessIndex>> join_identities(const Definitions& definitions);

// How many processes and threads of the kernel's these threads are: a process' first
// thread stays the same when it executes another program. `threads`: each once.
struct ProcessesAndThreads {
  uint64_t processes = 0, threads = 0;
};
ProcessesAndThreads count_joined(const Definitions& definitions,
                                 std::span<const ThreadIndex> threads);

}  // namespace arctrace::reader
