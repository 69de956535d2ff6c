// The view "histogram": how the times of single functions' calls are distributed.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// For each function that the settings name: the sums and quantiles of its calls, and a
// line for each power of two of their times with the number of calls.
//
// JSON: member "histograms", an array of the members of the view "flat" and of buckets,
// an array of from_ns, until_ns and calls. For several groups: member "threads" or
// "processes", an array with "histograms" in each element.
std::unique_ptr<View> make_histogram_view(const ViewSettings& settings);

}  // namespace arctrace::reader
