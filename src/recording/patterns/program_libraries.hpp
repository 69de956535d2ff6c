// The shared libraries that a program is linked with.
#pragma once

#include <string>
#include <vector>

namespace arctrace::recording {

// Their paths, in the order in which the loader would load them. Runs the loader that
// `program` names, not the program; none if it names no loader.
std::vector<std::string> libraries_of(const std::string& program);

}  // namespace arctrace::recording
