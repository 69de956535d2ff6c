// The functions that only glibc has, declared weak: so the shim can be loaded with
// another libc, where it does nothing. (musl refuses to start a program whose LD_PRELOAD
// lacks a symbol.)
#pragma once

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdlib.h>

// The loader's: the beginning of the main thread's stack.
extern "C" void* __libc_stack_end;

// pthread_atfork(), but not bound to a module, whose end would take it back.
extern "C" int __register_atfork(void (*before)(), void (*in_parent)(),
                                 void (*in_child)(), void* module);

#pragma weak __libc_stack_end
#pragma weak __register_atfork
#pragma weak dladdr1
#pragma weak gnu_get_libc_version
#pragma weak on_exit
// The loader's own fast search for the module at an address, since 2.35. Lock-free, also
// in signal handlers.
#pragma weak _dl_find_object

namespace arctrace::shim {

inline bool is_glibc() { return &gnu_get_libc_version != nullptr; }

}  // namespace arctrace::shim
