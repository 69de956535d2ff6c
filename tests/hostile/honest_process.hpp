// A process that uses the whole API, with threads, signal handlers and forks.
#pragma once

#include <cstdint>
#include <string>

#include "tests/hostile/stage.hpp"

namespace arctrace::testing {

// Joins, and writes until stage.ended. `number`: which of the honest processes it is.
void write_honestly(const std::string& path, uint32_t number, uint64_t seed,
                    Stage& stage);

}  // namespace arctrace::testing
