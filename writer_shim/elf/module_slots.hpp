// Reads the dynamic section of a loaded module, as the loader has mapped and relocated
// it: the slots through which it calls functions of other modules, its symbols, and its
// extent.
#pragma once

#include <link.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "writer_shim/base/mappings.hpp"

namespace arctrace::shim {

// The number of modules about which the shim has data at a time; it skips further ones.
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
  // The word from which the loader takes the offset, from the bias, of the initialization
  // function; null: there is none, or the word cannot be written.
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

// As read_module(), for a module of which only the dynamic section and, in `image`, its
// bias and range are known: no other values that segments have are set.
bool read_dynamic_section(const ElfW(Dyn) * section, ModuleImage& image);

// Makes the module's data that the loader has made read-only after relocation writable
// for as long as this object exists.
class WritableData {
 public:
  explicit WritableData(const AddressRange& range) : range_(range) {
    worked_ =
        is_empty() || protect(range.low, range.high - range.low, PROT_READ | PROT_WRITE);
  }
  ~WritableData() {
    if (!is_empty()) protect(range_.low, range_.high - range_.low, PROT_READ);
  }
  WritableData(const WritableData&) = delete;
  WritableData& operator=(const WritableData&) = delete;
  bool failed() const { return !worked_; }

 private:
  bool is_empty() const { return range_.low >= range_.high; }
  AddressRange range_;
  bool worked_;
};

}  // namespace arctrace::shim
