// What a recording warns of at its end, by its summary and its buffer.
#pragma once

#include <cstdint>
#include <string>

#include "reader/cli/options/call_filter_options.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recording/options.hpp"

namespace arctrace::cli {

// Prints that a program can't be traced. `why`: enum arctrace_untraced.
void warn_untraced(const std::string& program, uint32_t why);

// Prints a warning for each program that traced processes executed and that was not
// traced.
void warn_of_untraced(const CollectorSummary& summary);

// Prints a warning for what the filter of events, instants and counters names and no
// program has defined.
void warn_of_unmatched_events(const CollectorSummary& summary,
                              const recording::RecordFilterOptions& filter);

// Prints a warning if the session may run out of identities.
void warn_of_identities(const CollectorSummary& summary);

// Prints a warning for each pattern that no function matched. `matched`: the control
// page's word. `command`: the program in which similar names are looked for.
void warn_of_unmatched(const recording::CallFilterOptions& filter, uint64_t matched,
                       const std::string& command);

// Prints a warning if programs had no room to map the buffer. Returns whether it did.
bool warn_of_missing_room(const BufferView& buffer);

}  // namespace arctrace::cli
