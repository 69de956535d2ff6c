// Finds the arguments and the return value that are recorded of a function's calls: by
// the table of auto-args, by types that the command has read, and by the user's patterns,
// of which the later ones go before the earlier ones; and the locks, if the arguments are
// not recorded.
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// Sets the options, in place of any earlier ones, whose numbers hold no longer. The
// options must stay where they are.
void set_arg_options(const ShimOptions& options);

// Whether the options ask for arguments or return values of any function.
bool records_args();

// The number, for arctrace_shim_call_begin_with_args(), of what is recorded of the calls
// of the function with this linker's name; 0: nothing. `at`: of a function with a
// compiled-in hook; null: of a library's. Not to be called in a hook.
uint32_t arg_specs_of(const char* name, const FileAddress* at);

// How many locks are recorded of calls with this number; 0 if anything else is.
uint32_t count_only_locks(uint32_t number);

}  // namespace arctrace::shim
