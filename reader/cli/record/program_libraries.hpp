// The libraries that a program is linked with.
#pragma once

#include <string>
#include <vector>

namespace arctrace::cli {

// Their paths, in the order in which its loader, which is asked, would load them; none if
// `program` names no loader. The program does not run.
std::vector<std::string> libraries_of(const std::string& program);

}  // namespace arctrace::cli
