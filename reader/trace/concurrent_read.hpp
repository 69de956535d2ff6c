// Reads a trace while the caller works on the records that came before.
#pragma once

#include <absl/status/status.h>

#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Does what trace.read(sink) does, with a thread that reads ahead by at most some
// thousand records. `sink` is called in the calling thread; meanwhile only what does not
// change may be used of the trace: session(), clock(), and definitions(), whose index of
// modules only the calling thread brings up to date. On one CPU, or if there can be no
// thread, the caller reads. Of the records before an error, the last
// thousand may not come. It takes two copies of each record, some 10 ns, and saves a
// sixth to a third of the time of an export.
absl::Status read_concurrently(Trace& trace, const RecordSink& sink);

}  // namespace arctrace::reader
