// What to record differently to see more: the program whose own functions are missing,
// and the command that records the same again with further options.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/render/gap_list.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Returns the words of the command that made the trace, with `option` in front of its
// own: "arctrace", "record", "-P", ".", "--", "git", "status", each as a shell takes it.
// Empty if the trace does not tell it, or not `record` ran the command.
std::vector<std::string> record_again(const Session* session,
                                      const std::vector<std::string>& option);

// Returns the name of the library that has most functions of a program, as
// libpython3.11.so.1.0 has those of python3; empty if it has none: then they are in the
// program's own file. `libraries` are those of the program; all are paths.
std::string engine_of(std::string_view program,
                      std::span<const std::string_view> libraries);
// Whether that is a Python interpreter, by its file's name. The functions of its programs
// are recorded by a module (docs/guide/python.md).
bool is_python(std::string_view program);
// Returns the argument of -P that names functions of that library, as a shell takes it:
// 'lib:libpython*:PATTERN'.
std::string engine_pattern(std::string_view engine);

// Returns the program that worked most: by its time on the CPU or, where that is not
// recorded, outside of calls in which threads may wait for others, as a shell waits for
// its children. kNoIndex: no program was executed.
ProcessIndex busiest_program(const Replay& replay);

// Returns the option that own_functions_hint() advises to record with: "-P" and "."; or
// "-Z" and "1". Empty if it advises none, or one that has to be completed, or gives no
// hint. The arguments are the same.
std::vector<std::string> own_functions_option(const Replay& replay,
                                              const Session* session,
                                              const Summary* summary,
                                              const EnabledList* enabled);

}  // namespace arctrace::reader
