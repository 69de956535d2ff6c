// perf-PID.map: the names of generated code as lines `START SIZE NAME`, both hexadecimal.
#pragma once

#include "src/recorder/jit/code_stream.hpp"

namespace arctrace {

// Hands out each line's, in the order of the file: a later one replaces what it overlaps.
// No line tells a time. A last line without its end is left out: it may be half written.
CodeFileSummary read_perf_map_untrusted(int fd, const CodeSink& sink);

}  // namespace arctrace
