// Looks up functions in the loaded modules, as dlsym() does. The shim cannot call
// dlsym(), dladdr() and their like: before glibc 2.34 they are in libdl, which a program
// need not have, and a reference to the later version keeps a program with an earlier
// libc from starting.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "writer_shim/elf/elf_sections.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// The string table that `section` describes, of the file behind `fd`, which has `status`.
// Each file's table is in memory once, however often it is loaded again, and for as long
// as the process lives, because hooks may read its names at any time. To be called by one
// thread at a time. Empty: it does not exist, or there is no memory.
StringTable retained_strings(int fd, const struct stat& status,
                             const ElfW(Shdr) & section);

// A defined symbol of one module.
struct ModuleSymbol {
  uintptr_t address = 0;     // 0: there is none
  uint64_t size = 0;         // bytes; 0: not known
  bool is_resolver = false;  // `address` is of a function that returns the function's
};

// The symbol `name` of a module, in its default version. If `address` is not 0, the
// symbol of that name, in any version, that is at this address.
ModuleSymbol find_in_module(const ModuleImage& image, const char* name,
                            uintptr_t address = 0);

// The range of indices of the symbols that a loaded module has for others, with some that
// it lacks itself.
struct SymbolRange {
  uint32_t begin;
  uint32_t end;
};
SymbolRange symbols_for_others(const ModuleImage& image);

// The module at which find_function() begins.
enum class SearchFrom : uint8_t {
  // At the program, as with RTLD_DEFAULT. Only modules that were loaded when the program
  // started are searched, because those are never unloaded.
  kProgram,
  // After the shim, as with RTLD_NEXT. All modules are searched, so that the shim's hooks
  // find functions of a library that is loaded later. If the shim is late, and so comes
  // after libc, the search begins at the program and skips the shim.
  kNext,
};

// Whether the program had libc before it had the shim, which it has loaded by dlopen().
// Then no search by name finds the shim's functions.
bool is_late();

// The shim's own function `name`, which comes before those of that name in libraries; 0:
// it has none.
uintptr_t own_function(const char* name);

// The address of the function or object `name`; 0: no module has it. Takes the loader's
// lock; some microseconds with many modules.
uintptr_t find_function(const char* name, SearchFrom from);

// The facts about the function at an address.
struct FunctionFile {
  const char* path = "";  // of the module's file, which for the program is its link in
                          // /proc; empty: the address is in no module
  uint64_t size = 0;      // bytes of the function if it is called `name`; 0: not known
  AddressRange module{};
};
FunctionFile file_of_function(uintptr_t address, const char* name);

}  // namespace arctrace::shim
