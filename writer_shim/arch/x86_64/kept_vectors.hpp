// Tests whether call_keeping_vectors() can keep the vector registers.
#pragma once

#include "writer_shim/arch/kept_vectors.hpp"

namespace arctrace::shim {

// Whether this processor can save the vector registers.
bool can_keep_vectors();

}  // namespace arctrace::shim
