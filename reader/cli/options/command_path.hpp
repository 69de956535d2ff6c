// The file of a command that is about to be run.
#pragma once

#include <string>

namespace arctrace::cli {

// The file that PATH leads to for `command`, or `command` itself if it has a slash;
// empty: there is none that can be executed.
std::string find_program(const std::string& command);

}  // namespace arctrace::cli
