// Whether the process has glibc. What only glibc has is declared weak, so that our
// libraries can be loaded with another libc.
#pragma once

#include <gnu/libc-version.h>

#pragma weak gnu_get_libc_version

namespace arctrace {

inline bool is_glibc() { return &gnu_get_libc_version != nullptr; }

}  // namespace arctrace
