// The definitions of this process: names, event layouts, modules. They are kept in
// private memory, so that a fork child, or a process that joins a session later, can
// write all of them again.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

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

// What defines an event. An id that is not defined has no name and level 0.
struct EventFacts {
  std::string_view name;
  uint32_t level;
};
// Looks through all definitions of this process.
EventFacts find_event(uint32_t id);

// The definition holds no longer than `ticks` (an unloaded module): processes that begin
// later do not write it.
void retire_definition(Definition& definition, uint64_t ticks);

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
