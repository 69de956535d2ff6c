// The hostile process: it writes at random over a whole buffer.
#pragma once

#include <cstdint>
#include <string>

#include "tests/hostile/stage.hpp"

namespace arctrace::testing {

// Writes until stage.ended: random words, flipped bits, words from elsewhere in the
// buffer, and plausible words, over header, control page, slots, block headers and
// blocks; now and then it repairs something, so that the others reach new code.
void scribble(const std::string& path, uint64_t seed, Stage& stage);

}  // namespace arctrace::testing
