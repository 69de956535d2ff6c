// What this process has defined: names, event layouts, modules. Kept in private memory,
// so that a fork child, or a session joined later, can write all of it again.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// One part of a definition's body. The parts are written one after another, each padded
// with zeros to a multiple of 4.
struct BodyPart {
  const void* bytes;
  uint32_t size;
};

struct Definition;

// Adds a definition whose body is the parts in order; its first word must be the process
// (any value: it is set when written). `ticks`: since when it holds, 0: since the process
// began. If it is too long for the buffer's blocks, the last string is cut, whose u32
// length stands at body offset `cut_at`. Null: no memory. Lock-free.
Definition* add_definition(uint16_t type, const BodyPart* parts, uint32_t part_count,
                           uint32_t cut_at, uint64_t ticks);

// The definition holds no longer than `ticks` (an unloaded module): processes that begin
// later do not write it.
void retire_definition(Definition& definition, uint64_t ticks);

// Everything is to be written once more, into a new block: what the process wrote before
// may have been overwritten, because it seemed to be gone.
void renew_definitions(ProcessState& process);

// Writes what this process and thread have not yet written: PROCESS, THREAD and the
// registry. Stops silently where there is no room; the next block change tries again.
// False: there was never any for what the thread's records need, and they are to be lost.
bool emit_definitions(ThreadState& state, ProcessState& process);

// Definitions reach the buffer at once if the calling thread writes there already; else
// with its first record.
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
