// Reads the dynamic section of a loaded module, as the loader has mapped and relocated
// it: the slots through which it calls functions of other modules, its symbols, and its
// extent.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

// Of how many modules at a time the shim keeps something; it leaves further ones alone.
inline constexpr uint32_t kModulesMax = 4096;

struct AddressRange {
  uintptr_t low = 0;
  uintptr_t high = 0;
  bool contains(uintptr_t address) const { return address >= low && address < high; }
};

struct ModuleImage {
  uintptr_t bias = 0;
  AddressRange range;
  AddressRange read_only;  // data that is read-only since it was relocated (RELRO)
  AddressRange code;       // the executable segment, empty if there are several
  AddressRange unused;     // the rest of the last page, if that is writable; else empty
  const ElfW(Rela) * jump_slots = nullptr;
  size_t jump_slot_count = 0;
  const ElfW(Rela) * relocations = nullptr;
  size_t relocation_count = 0;
  // The word from which the loader takes the offset of the initialization function, from
  // the bias; null: there is none, or the word cannot be written.
  uint64_t* initializer = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  // The tables of find_in_module() (symbol_search.hpp); null: the module has no such
  // table.
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* sysv_hash = nullptr;
  const uint16_t* versions = nullptr;

  const char* name_of(const ElfW(Rela) & relocation) const {
    return strings + symbols[ELF64_R_SYM(relocation.r_info)].st_name;
  }
  bool is_of_another(const ElfW(Rela) & relocation) const {
    return symbols[ELF64_R_SYM(relocation.r_info)].st_shndx == SHN_UNDEF;
  }
  bool is_function_of_another(const ElfW(Rela) & relocation) const {
    const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(relocation.r_info)];
    return is_of_another(relocation) && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
  }
  // Whether the module uses a function of this name by a slot.
  bool imports(const char* name) const;
  uint64_t* slot_of(const ElfW(Rela) & relocation) const {
    return reinterpret_cast<uint64_t*>(bias + relocation.r_offset);
  }
};

// False: the module has no dynamic section, or no symbols.
bool read_module(const dl_phdr_info& info, ModuleImage& image);

// The same for a module of which only its dynamic section and, in `image`, its bias and
// range are known: nothing else that segments tell is set.
bool read_dynamic_section(const ElfW(Dyn) * section, ModuleImage& image);

}  // namespace arctrace::shim
