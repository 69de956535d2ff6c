// The definitions of this process: names, event layouts, modules. They are kept in
// private memory, so that a fork child, or a process that joins a session later, can
// write all of them again (definitions.hpp). The list only grows, without a lock.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/shared_atomics.hpp"

namespace arctrace {

struct Definition {
  uint64_t next;  // address, 0 at the end
  uint64_t ticks;
  uint64_t retired_ticks;  // UINT64_MAX: holds still
  uint32_t size;           // of the body
  uint32_t cut_at;
  uint32_t type;
  uint32_t number;        // in the order in which they were made
  uint32_t filter_flags;  // of a name: see NameFacts

  std::byte* body() { return reinterpret_cast<std::byte*>(this + 1); }
};

// The first one's address, 0: there is none. Each names the next one.
extern uint64_t first_definition;

// The bytes of the bodies of those that hold still.
uint64_t valid_definition_bytes();

inline Definition* definition_at(uint64_t address) {
  return reinterpret_cast<Definition*>(static_cast<uintptr_t>(address));
}

// The one after `definition`'s address, or the first one after 0; 0: there is none so
// far.
inline uint64_t definition_after(uint64_t address) {
  return IpcAtomics::load_acquire(address == 0 ? first_definition
                                               : definition_at(address)->next);
}

// Bytes of a name that are kept.
inline constexpr uint32_t kNameMax = 1024;

// One part of a definition's body. The parts are written one after another, each padded
// with zeros to a multiple of 4.
struct BodyPart {
  const void* bytes;
  uint32_t size;
};

// Adds a definition whose body is the parts in order; its first word must be the process
// (any value: it is set when written). `ticks`: since when it holds, 0: since the process
// began. If it is too long for the buffer's blocks, the last string is cut, whose u32
// length stands at body offset `cut_at`. Null: no memory. Lock-free.
Definition* add_definition(uint16_t type, const BodyPart* parts, uint32_t part_count,
                           uint32_t cut_at, uint64_t ticks);

// What defines an event.
struct EventFacts {
  std::string_view name;
  uint32_t level = 0;
  uint32_t field_count = 0;
  const std::byte* fields = nullptr;  // as they stand in the body

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
// The body that defines the event of this id in this process; null: none does. It stays
// where it is. Looks through all definitions of the process.
const arctrace_event_layout_body* find_event(uint32_t id);

// What is known of a name: its text, and the flags (enum arctrace_shim_call_flags) that
// the filter with which the program was started has for scopes of that name.
struct NameFacts {
  std::string_view text;
  uint32_t filter_flags;
};
// An id that is not defined has no text and no flags. Looks through all definitions of
// this process.
NameFacts find_name(uint32_t id);

// Defines the text of the process' filter of calls (SPEC.md REC-13); and has it hold no
// longer, because the session is left.
void define_filter_text(std::string_view text);
void retire_filter_text();

// Sets the flags that find_name() returns.
void set_name_flags(Definition& definition, uint32_t flags);

// The text of a name's definition.
std::string_view name_text(Definition& definition);

// Calls use(definition) for each name of this process.
void for_each_name(void (*use)(Definition& definition));

// The definition holds no longer than `ticks` (an unloaded module): processes that begin
// later do not write it.
void retire_definition(Definition& definition, uint64_t ticks);

// How many bytes the parts take, and puts them there.
uint32_t parts_size(const BodyPart* parts, uint32_t part_count);
void copy_parts(std::byte* to, const BodyPart* parts, uint32_t part_count);

}  // namespace arctrace
