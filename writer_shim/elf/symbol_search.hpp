// Looks up functions in the loaded modules, as dlsym() does. The shim cannot call
// dlsym(), dladdr() and their like: before glibc 2.34 they are in libdl, which a program
// need not have, and a reference to the later version keeps a program with an earlier
// libc from starting.
#pragma once

#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

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

// Where find_function() begins.
enum class SearchFrom : uint8_t {
  // At the program, as with RTLD_DEFAULT. Only modules that were loaded when the program
  // started are searched: those do not go away.
  kProgram,
  // After the shim, as with RTLD_NEXT. All modules are searched, so that the shim's hooks
  // find what a library brings that is loaded later. If the shim is late, which comes
  // after
  // libc, at the program; the shim itself is left out.
  kNext,
};

// Whether the program had libc before it had the shim, which it has loaded by dlopen().
// Then no search by name comes to the shim's functions.
bool is_late();

// The shim's own function `name`, which stands before those of that name in libraries; 0:
// it has none.
uintptr_t own_function(const char* name);

// The address of the function or object `name`; 0: no module has it. Takes the loader's
// lock; some microseconds with many modules.
uintptr_t find_function(const char* name, SearchFrom from);

// What is known of the function at an address.
struct FunctionFile {
  const char* path = "";  // of the module's file, which for the program is its link in
                          // /proc; empty: the address is in no module
  uint64_t size = 0;      // bytes of the function if it is called `name`; 0: not known
  AddressRange module{};
};
FunctionFile file_of_function(uintptr_t address, const char* name);

}  // namespace arctrace::shim
