// Reads jit-PID.dump, in which a runtime records the code that it loads and moves, with
// times (Linux, tools/perf/Documentation/jitdump-specification.txt). CodeFiles calls it.
#pragma once

#include <cstdint>

#include "src/recorder/jit/code_stream.hpp"

namespace arctrace {

// The process to which the dump must belong.
struct JitDumpOwner {
  uint32_t pid = 0;       // as the process sees itself
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC; a dump that was begun earlier is not its own
};

// Passes to the sink the code that was loaded, and moved code at its new address, in the
// order of the file. Times of another clock than CLOCK_MONOTONIC are dropped. A file that
// is not a dump of this byte order and version and of that process counts as one entry
// left out.
CodeFileSummary read_jit_dump_untrusted(int fd, const JitDumpOwner& owner,
                                        const CodeSink& sink);

}  // namespace arctrace
