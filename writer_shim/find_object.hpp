// The loader's own quick search for what is mapped at an address: in glibc since 2.35,
// else null. Lock-free, also inside signal handlers.
#pragma once

#include <dlfcn.h>

#pragma weak _dl_find_object
