// Defines the modules that the process has loaded: the program, its libraries and the
// vdso, each with its build-id.
#pragma once

#include <cstdint>

namespace arctrace {

// Compares what the loader has now with what is defined and defines the difference
// (MODULE; MODULE_GONE at `ticks`). Takes the loader's lock, so never on the hot path and
// never in a fork child. `first`: the modules of the process' start hold since then.
void scan_modules(uint64_t ticks, bool first);

// Defines how functions of the module at the address of this one are hooked (HOOKED), as
// long as the module stays; the first kind counts. Nothing is done if the module is not
// defined. As scan_modules(), under the loader's lock.
void define_hooked(uint32_t kind, uint64_t function, uint64_t ticks);

}  // namespace arctrace
