// Room for copies of a module's relocations, in the module itself: the loader counts
// relocations from the module's first one by 32 bits, in units of their size, so that a
// copy must come after that one and not far from it. The last page of the module's
// variables is mapped to its end, writable, and nobody's after the last variable.
#pragma once

#include <link.h>

#include <cstdint>

#include "writer_shim/arch/lazy_binding.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// For one thread that binds a slot. All zero is a free one.
struct BindingPlace {
  static constexpr uint32_t kRelocationWords = sizeof(ElfW(Rela)) / sizeof(uint64_t);

  uint64_t is_taken;
  uint64_t target;  // which the loader writes instead of the slot
  // The copy begins at the word that is a whole number of relocations from the first.
  uint64_t words[2 * kRelocationWords - 1];
};

struct BindingRoom {
  const ElfW(Rela) * relocations;  // of the module's slots
  uint64_t count;                  // of places, which follow
};

// Prepares the module's room, unless that has been done, and returns its distance from
// `table` in words; 0: there is no room. REQUIRES: no other thread calls through the
// module's slots that are bound lazily, or the room has been prepared.
uint32_t binding_room_distance(const ModuleImage& image, const uint64_t* table);

// Null: the module has no room.
BindingRoom* binding_room(const LazyBinding& binding);

// Null: other threads, or frames of this one, have taken all. Threads take places at the
// same time; a fork child keeps those that its parent's other threads had taken.
BindingPlace* take_binding_place(BindingRoom& room);
void leave_binding_place(BindingPlace& place);

// Copies the relocation `index` so that it leads to the place's target, in a module with
// this bias. Returns the copy's index.
uint32_t copy_relocation(const BindingRoom& room, BindingPlace& place, uint32_t index,
                         uintptr_t bias);

}  // namespace arctrace::shim
