// A program whose AddressSanitizer is a library (gcc's) refuses to run if another one
// stands before that, as a preloaded one does. It may: what it takes the place of, it
// calls. The sanitizer asks for its options here, unless the program itself has them;
// ASAN_OPTIONS goes above.
#include "writer_shim/base/hook.hpp"

ARCTRACE_HOOK const char* __asan_default_options() { return "verify_asan_link_order=0"; }
