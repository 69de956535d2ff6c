// Writes the definitions of this process (definition_list.hpp) to the buffer, and again
// where earlier copies may be gone.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/writer/definition_list.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Has all definitions written once more, into a new block. This is needed when the
// earlier copies may have been overwritten, because the process seemed to have ended.
void renew_definitions(ProcessState& process);

// Writes the definitions that this process and thread have not written yet: PROCESS,
// THREAD, names, events and modules. It stops silently where there is no room, and the
// next block change tries again. Returns false if there has never been room for what the
// thread's records need; then its records are lost, because nobody could read them.
bool emit_definitions(ThreadState& state, ProcessState& process);

// Writes new definitions to the buffer at once if the calling thread is attached;
// otherwise they are written before its first record.
void emit_from_this_thread();

// Writes a record of class definitions now, and never again. False: no room.
bool write_parts(ThreadState& state, ProcessState& process, uint16_t type,
                 const BodyPart* parts, uint32_t part_count, uint64_t ticks);

struct ThreadFacts {
  uint32_t writer;
  uint32_t tid;
  uint64_t start_ticks;
  const char* name;
};
// The same of a thread of this process.
bool write_thread(ThreadState& state, ProcessState& process, const ThreadFacts& thread,
                  uint64_t ticks);

}  // namespace arctrace
