// The definitions of this process: names, event layouts, modules. They are stored in
// private memory, so that a fork child, or a process that joins a session later, can
// write all of them again. That list (definition_list.cpp) only grows, without a lock.
// definitions.cpp writes them to the buffer, and again where earlier copies may be gone.
// Also the frames that a fork child inherits (inherited_frames.cpp).
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/process/process_identity.hpp"
#include "src/stack/open_calls.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

struct Definition {
  uint64_t next;  // address, 0 at the end
  uint64_t ticks;
  uint64_t retired_ticks;  // UINT64_MAX: not retired
  uint32_t size;           // of the body
  uint32_t cut_at;
  uint32_t type;
  uint32_t number;        // in the order in which they were made
  uint32_t filter_flags;  // of a name: see NameFacts

  std::byte* body() { return reinterpret_cast<std::byte*>(this + 1); }
};

// The address of the first definition, 0: there is none. Each has the address of the next
// one.
extern uint64_t first_definition;

// The size in bytes of the bodies of definitions that are not retired.
uint64_t valid_definition_bytes();

inline Definition* definition_at(uint64_t address) {
  return reinterpret_cast<Definition*>(static_cast<uintptr_t>(address));
}

// The address of the definition after the one at `address`, or of the first one after 0;
// 0: there is none so far.
inline uint64_t definition_after(uint64_t address) {
  return IpcAtomics::load_acquire(address == 0 ? first_definition
                                               : definition_at(address)->next);
}

// The number of bytes of a name that are used.
inline constexpr uint32_t kNameMax = 1024;

// One part of a definition's body. The parts are written one after another, each padded
// with zeros to a multiple of 4.
struct BodyPart {
  const void* bytes;
  uint32_t size;
};

// Adds a definition whose body is the parts in order; its first word must be the process
// (any value: it is set when written). `ticks`: since when it is valid, 0: since the
// process began. If it is too long for the buffer's blocks, the last string is cut, whose
// u32 length is at body offset `cut_at`. Null: no memory. Lock-free.
Definition* add_definition(uint16_t type, const BodyPart* parts, uint32_t part_count,
                           uint32_t cut_at, uint64_t ticks);

// The facts that define an event.
struct EventFacts {
  std::string_view name;
  uint32_t level = 0;
  uint32_t field_count = 0;
  const std::byte* fields = nullptr;  // in the form of the body

  // `layout`: a whole body; null: an event without a name and fields, of level 0.
  explicit EventFacts(const arctrace_event_layout_body* layout) {
    if (layout == nullptr) return;
    const auto* text = reinterpret_cast<const char*>(layout + 1);
    name = {text, layout->name_size};
    level = layout->level;
    field_count = layout->field_count;
    fields = reinterpret_cast<const std::byte*>(text) + padded_size(layout->name_size);
  }

  // Calls use(type, name) for each field, in order, as long as that returns true.
  template <class Use>
  void for_each_field(const Use& use) const {
    const std::byte* at = fields;
    for (uint32_t i = 0; i < field_count; ++i) {
      const auto* field = reinterpret_cast<const arctrace_layout_field*>(at);
      const uint32_t type = field->type, name_size = field->name_size;
      const auto* text = reinterpret_cast<const char*>(field + 1);
      if (!use(type, std::string_view(text, name_size))) return;
      at += sizeof *field + padded_size(name_size);
    }
  }
};
// The body that defines the event of this id in this process; null: there is none. It is
// never moved. Searches all definitions of the process.
const arctrace_event_layout_body* find_event(uint32_t id);

// The facts about a name: its text, and the flags (enum arctrace_shim_call_flags) that
// the filter with which the program was started has for scopes of that name.
struct NameFacts {
  std::string_view text;
  uint32_t filter_flags;
};
// The facts about the name; an id that is not defined has no text and no flags. Searches
// all definitions of this process.
NameFacts find_name(uint32_t id);

// The first function defines the text of the process' filter of calls (SPEC.md REC-13);
// the second retires it, because the process leaves the session.
void define_filter_text(std::string_view text);
void retire_filter_text();

// Sets the flags that find_name() returns.
void set_name_flags(Definition& definition, uint32_t flags);

// The text of a name's definition.
std::string_view name_text(Definition& definition);

// Calls use(definition) for each name of this process.
void for_each_name(void (*use)(Definition& definition));

// Retires a definition at `ticks` (an unloaded module): processes that begin later do not
// write it.
void retire_definition(Definition& definition, uint64_t ticks);

// The size of the parts in bytes, and the function that writes them to a body.
uint32_t parts_size(const BodyPart* parts, uint32_t part_count);
void copy_parts(std::byte* to, const BodyPart* parts, uint32_t part_count);

// Has all definitions written once more, into a new block. This is needed when the
// earlier copies may have been overwritten, because the process seemed to have ended.
void renew_definitions(ProcessState& process);

// Writes the definitions that this process and thread have not written yet: PROCESS,
// THREAD, names, events and modules. It stops without an error if there is no space, and
// the next block change tries again. Returns false if there has never been space for the
// definitions that the thread's records need; then its records are lost, because nobody
// could read them.
bool emit_definitions(ThreadState& state, ProcessState& process);

// Writes new definitions to the buffer at once if the calling thread is attached;
// otherwise they are written before its first record.
void emit_from_this_thread();

// Writes a record of class definitions now, and never again. False: no space.
bool write_parts(ThreadState& state, ProcessState& process, uint16_t type,
                 const BodyPart* parts, uint32_t part_count, uint64_t ticks);

struct ThreadFacts {
  uint32_t writer;
  uint32_t tid;
  uint64_t start_ticks;
  const char* name;
};
// As write_parts(), about a thread of this process.
bool write_thread(ThreadState& state, ProcessState& process, const ThreadFacts& thread,
                  uint64_t ticks);

// The frames in which a fork child begins: those that its forker had open. The forker's
// own records may not have them, because they were lost or overwritten.

// Saves the calling thread's open frames for a child. To be called before it forks, by a
// function all of whose callers' frames are above `stack_end`.
void keep_frames_for_child(uintptr_t stack_end);

// To be called in the child: takes the saved frames. `parent_id`: the identity of the
// process that forked. Returns whether the innermost one is that of a library call.
bool inherit_frames(uint32_t parent_id);

// The calling thread, which has no open frame of its own, leaves a function: the
// innermost inherited one of that key, and those inside it, are open no more.
void leave_inherited_frame(const ThreadState& state, uint64_t key);

// The frames that this process, which is the calling one, has inherited. Null: none are
// known.
const ForkFrames* inherited_frames(const ProcessState& process);

}  // namespace arctrace::writer
