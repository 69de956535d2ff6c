// The names of library calls, defined in the trace once for each process.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// The id of a call's name, which is defined if need be. 0: no memory. Two threads may ask
// at once: then there are two ids for one name.
uint32_t call_name_id(const char* name);

}  // namespace arctrace::shim
