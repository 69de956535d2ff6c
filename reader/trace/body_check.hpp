// Whether the body of a record holds what its type says (SPEC.md, rule R3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace arctrace::reader {

// Why `body` is not one of `type`, or nullptr if it is: then it holds the fixed part of
// the type, and the texts and elements of which the fixed part gives sizes and counts.
// The body of an unknown type may hold anything.
const char* body_problem_untrusted(uint16_t type, std::span<const std::byte> body);

}  // namespace arctrace::reader
