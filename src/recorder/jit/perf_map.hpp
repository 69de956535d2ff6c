// Reads perf-PID.map, in which a runtime names generated code in lines `START SIZE NAME`,
// with hexadecimal numbers. CodeFiles calls it.
#pragma once

#include "src/recorder/jit/code_stream.hpp"

namespace arctrace {

// Passes the code of each line to the sink, in the order of the file: later code replaces
// what it overlaps. There are no times. A last line without a newline counts as left out,
// because it may be half written.
CodeFileSummary read_perf_map_untrusted(int fd, const CodeSink& sink);

}  // namespace arctrace
