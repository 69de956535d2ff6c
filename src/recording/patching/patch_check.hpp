// Checks -P and --snapshot-when before the recorded program begins, by an analysis of its
// file; and counts NOP areas for hooks in it that the shim cannot use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/recording/patterns/filters.hpp"

namespace arctrace::recording {

// NOP areas for hooks (-fpatchable-function-entry) of a program's functions that the shim
// cannot use, because it is not known where these functions begin.
struct PatchableEntries {
  size_t all = 0;
  size_t without_begin = 0;  // neither unwind tables nor symbols are about the function
};

// Counts those of the ELF file at `path`; none if it cannot be read, or is not for
// x86-64. Reads its code and unwind tables if it has NOP areas and its symbols are
// stripped.
PatchableEntries count_patchable_entries_untrusted(const std::string& path);

// A line for each pattern of -P that cannot match a function to be patched: neither one
// of the program, nor one of another program, because it executes none (neither it nor a
// library that it is linked with imports a function for that). Patterns for all functions
// are never among them. `command`: the program, as it is executed. None if its file is
// not there, cannot be analysed, or is of a kind of which no function is patched. Takes
// as long as the analysis of the program, unless all patterns are for all functions. The
// plan is then in the user's cache, where the process that patches the program finds it.
std::vector<std::string> patch_problems(const CallFilterOptions& options,
                                        const std::string& command);

// A line for each condition of --snapshot-when that no call of `program` will meet, as
// far as that is known before it runs: no function of it or of the libraries that it is
// linked with matches, or those that match have no hooks and -P does not patch them. What
// it may execute or load is not known. None if its file is no ELF file. REQUIRES: no
// condition has a problem.
std::vector<std::string> unmet_conditions(const CallFilterOptions& options,
                                          const std::string& program);

}  // namespace arctrace::recording
