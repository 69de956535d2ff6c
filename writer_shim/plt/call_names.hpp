// The names of library calls, which each process defines in the trace once.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// The id of a call's name, which is defined if it is new. 0: there is no memory. If two
// threads ask at once for a new name, it may get two ids.
uint32_t call_name_id(const char* name);

}  // namespace arctrace::shim
