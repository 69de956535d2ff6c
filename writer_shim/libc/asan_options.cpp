// Defaults for a program whose AddressSanitizer is a library (gcc's). The sanitizer
// refuses to run if another library comes before it, as a preloaded one does. The shim
// may, because it calls what it replaces. The program's own function of this name, and
// ASAN_OPTIONS, go before.
#include "writer_shim/libc/hook.hpp"

ARCTRACE_HOOK const char* __asan_default_options() { return "verify_asan_link_order=0"; }
