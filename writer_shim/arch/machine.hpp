// What hangs on the machine that needs no code of its own: numbers and layouts.
#pragma once

#if defined(__x86_64__)
#include "writer_shim/arch/x86_64/machine.hpp"
#elif defined(__aarch64__)
#include "writer_shim/arch/aarch64/machine.hpp"
#endif
