// The module at an address, and its unwind tables, found without a lock and in signal
// handlers: by the loader's own search where it has one, which is since glibc 2.35, else
// in a table that the shim keeps.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

struct LoadedObject {
  AddressRange range{};                     // empty: no module is known there
  const std::byte* eh_frame_hdr = nullptr;  // null: the module has none
  uintptr_t bias = 0;
  const ElfW(Dyn) * dynamic = nullptr;  // null: the module has none
};

// The module at the address. Takes some 100 ns; without the loader's search, some ns for
// each module more. The first call takes the loader's lock; it is made while the program
// starts.
LoadedObject find_loaded_object(uintptr_t address);

// The module whose code runs at `address`, as read_dynamic_section() reads it. False: no
// module is known there, or it has no dynamic section.
bool read_loaded_module(uintptr_t address, ModuleImage& image);

// From now on number `index` of the shim's modules is this one; the second function says
// that it is none. The caller holds the loader's lock. Both do nothing where the loader
// has its own search, or if `index` is not below kModulesMax.
void set_loaded_object(uint32_t index, const dl_phdr_info& info, AddressRange range);
void clear_loaded_object(uint32_t index);

}  // namespace arctrace::shim
