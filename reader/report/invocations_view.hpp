// The view "invocations": a row for each call.
#pragma once

#include <cstddef>
#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// Collects the calls, mostly in a temporary file, and writes them at the end: in the
// order in which they were entered, unless they are sorted by total (their duration),
// self or name. Columns: number, start, stop, duration, self, process/thread, name.
//
// JSON: member "invocations", an array.
std::unique_ptr<View> make_invocations_view(const ViewSettings& settings);

// The same with another number of rows in memory, for tests.
std::unique_ptr<View> make_invocations_view(const ViewSettings& settings,
                                            size_t rows_in_memory);

}  // namespace arctrace::reader
