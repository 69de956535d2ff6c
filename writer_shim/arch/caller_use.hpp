// Recognizes, by their code, functions that must not be called through a stub: those that
// read or replace their own return address, which the stub has exchanged, and those that
// save the registers of their caller in order to return to it once more.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Whether the function does so, as far as its first few hundred instructions show. What
// it passes to the hooks of -finstrument-functions does not count. Reads only code, and
// slots through which it jumps; takes some microseconds.
bool uses_its_caller(uintptr_t function);

// Whether the function's first instructions call a compiled-in hook. On aarch64: no.
bool calls_compiled_in_hook(uintptr_t function);

}  // namespace arctrace::shim
