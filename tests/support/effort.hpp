// How many of its possible cases a test tries: fewer in the gate, all with
// ARCTRACE_TEST_LONG.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace arctrace::testing {

// Whether tools/test runs the tests' short form.
inline bool is_gate() { return std::getenv("ARCTRACE_GATE") != nullptr; }

inline bool is_long() { return std::getenv("ARCTRACE_TEST_LONG") != nullptr; }

// As many of `usual` tries as the gate has time for: a quarter, at least one.
inline uint64_t tries(uint64_t usual) { return is_gate() ? (usual + 3) / 4 : usual; }

}  // namespace arctrace::testing
