// What only glibc has. Weak, so that the shim can be loaded with another libc (musl
// refuses to start a program whose LD_PRELOAD lacks a symbol), where it does nothing.
#pragma once

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdlib.h>

extern "C" void* __libc_stack_end;  // the loader's: where the main thread's stack begins

// pthread_atfork() without a module that it ends with.
extern "C" int __register_atfork(void (*before)(), void (*in_parent)(),
                                 void (*in_child)(), void* module);

#pragma weak __libc_stack_end
#pragma weak __register_atfork
#pragma weak dladdr1
#pragma weak gnu_get_libc_version
#pragma weak on_exit
// The loader's own quick search for what is mapped at an address: since 2.35. Lock-free,
// also inside signal handlers.
#pragma weak _dl_find_object

namespace arctrace::shim {

inline bool is_glibc() { return &gnu_get_libc_version != nullptr; }

}  // namespace arctrace::shim
