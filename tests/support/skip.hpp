// Cases that have nothing to do on this machine.
#pragma once

#include <string>

namespace arctrace::testing {

// Marks the running case as skipped, with the reason; the case then returns. It counts as
// skipped, by name, and not as passed.
void skip_case(const std::string& why);

}  // namespace arctrace::testing
