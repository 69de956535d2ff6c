// The view "graph", which `arctrace graph` shows: single functions, the paths to them and
// what they call.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// For each function that the settings name: a line for each path to its outermost calls,
// and the tree of what is called in these.
//
// JSON: member "graphs", an array of the members of the view "flat" without times of
// single calls, of paths, an array of path (names, outermost first), calls, base_ns and
// cum_ns, and of below, a tree as in the view "tree". For several groups: member
// "threads" or "processes", an array with "graphs" in each element.
std::unique_ptr<View> make_graph_view(const ViewSettings& settings);

}  // namespace arctrace::reader
