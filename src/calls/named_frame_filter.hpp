// The filter of functions (SPEC.md FLT-1) for frames that the program names itself
// (arctrace_name_key()): the API's scopes. The shim asks the filter for functions; nobody
// but the writer knows these.
//
// A verdict is remembered by the name's id, with the live filter's round.
#pragma once

#include <cstdint>

#include "src/writer/definition_list.hpp"

namespace arctrace {

// The flags (enum arctrace_shim_call_flags) that the filter of the command line has for a
// name, which ends with a zero byte.
using FlagsOfName = uint32_t(const char* name);

// From now on the names that are there, and those that are defined later, have the flags
// that `flags_of` returns, where there is no live filter. Null: none. To be called once
// for a session, before the program's own threads record.
void set_flags_of_names(FlagsOfName* flags_of);

// Asks it for a name that has just been defined.
void judge_name(Definition& definition);

// The flags that the filter in force has for a frame with this key: 0 for a function's.
// Follows a live filter that has changed. REQUIRES: the session is joined.
uint32_t named_frame_flags(uint64_t key);

}  // namespace arctrace
