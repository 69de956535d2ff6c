// The program file of a command.
#pragma once

#include <string>

namespace arctrace::recording {

// The file that a search in PATH finds for `command`, or `command` itself if it has a
// slash. Empty: there is no executable file of this name.
std::string find_program(const std::string& command);

}  // namespace arctrace::recording
