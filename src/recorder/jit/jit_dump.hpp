// jit-PID.dump: generated code as its runtime loads and moves it, with times (Linux,
// tools/perf/Documentation/jitdump-specification.txt).
#pragma once

#include <cstdint>

#include "src/recorder/jit/code_stream.hpp"

namespace arctrace {

// Whose dump it must be.
struct JitDumpOwner {
  uint32_t pid = 0;       // as the process sees itself
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC: a dump that was begun before is not its own
};

// Hands out what was loaded, and what was moved at its new place, in the order of the
// file. Times of another clock than CLOCK_MONOTONIC are not told. A file that is no dump
// of this byte order and version, or another process', is one record that is left out.
CodeFileSummary read_jit_dump_untrusted(int fd, const JitDumpOwner& owner,
                                        const CodeSink& sink);

}  // namespace arctrace
