// Cases that have nothing to do on this machine.
#pragma once

#include <string>

namespace arctrace::testing {

// Says that the case that runs is skipped, and why; the case returns then. It counts as
// skipped, by name, and not as passed.
void skip_case(const std::string& why);

}  // namespace arctrace::testing
