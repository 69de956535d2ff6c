// What a buffer's control page has of changes of the gate and of executed programs, as
// the records that a recorder would have made of it: a buffer that is read as it is has
// no RECORDS chunks.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <vector>

#include "reader/trace/input.hpp"
#include "src/buffer/geometry.hpp"

namespace arctrace::reader {

// The bytes of a RECORDS chunk's payload: ENABLED and EXEC, as far as the control page
// still has them. Error: the input cannot be read.
absl::StatusOr<std::vector<std::byte>> records_of_moments_untrusted(
    Input& input, const Geometry& geometry);

}  // namespace arctrace::reader
