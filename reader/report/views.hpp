// The views of `arctrace report`, each with its output as text and as JSON. Two more are
// in locks_view.hpp and critical_path_view.hpp; the table of all is in view_types.cpp.
#pragma once

#include <cstddef>
#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// The view "tree": call trees, one for each thread or process, or one for all.
// Columns: level, recursion level, calls, shares and times of the function itself (self)
// and with all it called (total), and the name, indented by level.
//
// JSON: member "threads", "processes" or "all", an array: for each tree pid, tid, name,
// and root, an object of name, calls, base_ns, cum_ns and children, or null if the
// options hide even the root.
std::unique_ptr<View> make_tree_view(const ViewSettings& settings);

// The view "log-rt": call trees in the columns of IBM's JPROF, for programs to read.
// Columns: level, calls, calls made from it, self ns, dispatches and interrupts seen (0:
// not recorded; those that woke a thread if interrupts have no records of their own), and
// the name, which is the rest of the line.
//
// JSON: member "log_rt", an array of the same rows.
std::unique_ptr<View> make_log_rt_view(const ViewSettings& settings);

// The view "flat": a line for each function. JSON: member "functions", an array of name,
// module, recorded (if some calls were left out), calls, base_ns, cum_ns, and of their
// calls avg_ns, min_ns, max_ns, p50_ns, p90_ns, p99_ns, p999_ns, which are null where
// there are too few. For several groups: member "threads" or "processes", an array with
// "functions" in each element.
std::unique_ptr<View> make_flat_view(const ViewSettings& settings);

// The view "kinds": time by kind of library function: locks, I/O, allocation and so on.
// A line for each kind, and below it one for each of its functions.
//
// JSON: member "kinds", an array of name, calls, base_ns, cum_ns, and functions as in
// the flat view. For several groups: member "threads" or "processes", an array with
// "kinds" in each element.
std::unique_ptr<View> make_kinds_view(const ViewSettings& settings);

// The view "histogram": how the times of single functions' calls are distributed.
// For each function that the settings name: the sums and quantiles of its calls, and a
// line for each power of two of their times with the number of calls.
//
// JSON: member "histograms", an array of the members of the view "flat" and of buckets,
// an array of from_ns, until_ns and calls. For several groups: member "threads" or
// "processes", an array with "histograms" in each element.
std::unique_ptr<View> make_histogram_view(const ViewSettings& settings);

// The view "arcs": each function with its callers and its callees.
// For each function its parents, itself, and its children, a line each.
//
// JSON: member "arcs", an array of functions as the flat view has them, each with parents
// and children. For several groups: member "threads" or "processes", an array with "arcs"
// in each element.
std::unique_ptr<View> make_arcs_view(const ViewSettings& settings);

// The view "graph", which `arctrace graph` shows: single functions, the paths to them and
// what they call.
// For each function that the settings name: a line for each path to its outermost calls,
// and the tree of what is called in these.
//
// JSON: member "graphs", an array of the members of the view "flat" without times of
// single calls, of paths, an array of path (names, outermost first), calls, base_ns and
// cum_ns, and of below, a tree as in the view "tree". For several groups: member
// "threads" or "processes", an array with "graphs" in each element.
std::unique_ptr<View> make_graph_view(const ViewSettings& settings);

// The view "flow": every entry, exit and record in order of time.
// Writes while the trace is replayed. Times are those of the records; the frames that are
// open at the end come last.
//
// JSON: member "flow", an array of time_ns, pid, tid, depth, type, and what the type has;
// and member "open_frames", an array of start_ns, pid, tid, depth, name.
std::unique_ptr<View> make_flow_view(const ViewSettings& settings);

// The view "invocations": a row for each call.

// Collects the calls, mostly in a temporary file, and writes them at the end: in the
// order in which they were entered, unless they are sorted by total (their duration),
// self or name. Columns: number, start, stop, duration, self, process/thread, name.
//
// JSON: member "invocations", an array.
std::unique_ptr<View> make_invocations_view(const ViewSettings& settings);

// Makes the same view with another number of rows in memory, for tests.
std::unique_ptr<View> make_invocations_view(const ViewSettings& settings,
                                            size_t rows_in_memory);

// The view "slowest": the calls of some functions that took the longest.
// For each of the slowest calls its duration and start, thread, arguments and result, and
// the frames that it was in; then why the slowest 1 % of each function's calls are slow,
// against its median calls.
//
// JSON: members "calls", the number of all calls of the functions, and "slowest", an
// array of the members that the view "invocations" has without seq, and of path: names of
// the frames around the call, outermost first, and its own. "why" has for each function
// of which enough calls were seen as a whole name, module, calls, slow_calls, slow_ns,
// median_calls, median_ns, and "causes": path (names below the function, outermost
// first), state, slow_ns, median_ns, and more_ns, the difference of a slow call to a
// median one on average. The other times are sums, to which the causes' add up. Without
// the kernel's records the state is null.
std::unique_ptr<View> make_slowest_view(const ViewSettings& settings);

// The view "errors": the calls that failed, by function and errno.
// A line for each, with the number of the function's calls whose results are recorded:
// those of system calls, and of RESULT records.
//
// JSON: members "results", the number of calls whose results are recorded, and "errors",
// an array of name, module, errno ("ENOENT"), number, errors, calls, total_ns, max_ns of
// the calls that failed, and first_ns, when the first of them ended.
std::unique_ptr<View> make_errors_view(const ViewSettings& settings);

// The view "threads": what each thread did over time: it ran, waited for a CPU, or was
// blocked.
// A table for each thread: its states in order of time, or the longest first if they are
// sorted by total. Needs memory for each state; in order of time, for as many as the
// limit has.
//
// JSON: member "threads", an array of pid, tid, name, running_ns, ready_ns (of which
// preempted_ns, and interrupted_ns if that is not 0; if wake-ups are not known, only
// preempted_ns, and the rest is part of blocked_ns), blocked_ns and states.
std::unique_ptr<View> make_threads_view(const ViewSettings& settings);

// The view "wakers": which thread woke which, and from which frames.
// Adds up the wake-ups: a row for each waker with its frames and each woken thread with
// those in which it was blocked. Sorted by the time that it was blocked, or by the number
// of wake-ups if sorted by calls.
//
// JSON: member "wakers", an array of wake_ups, blocked_ns, from_interrupt, waker and
// woken (pid, tid, name, path).
std::unique_ptr<View> make_wakers_view(const ViewSettings& settings);

// The view `processes`: the tree of commands, how each ended, and what it took; with the
// kernel's records also how long threads waited for a CPU, and requests for a disk.
std::unique_ptr<View> make_processes_view(const ViewSettings& settings);

// The view "summary", which a report shows if no other one is asked for.
// 40 lines of text at most: how the program ended and, if it was killed, where its
// threads were; losses; the time on the CPU and waiting; what the time was spent on; the
// hottest functions and paths; threads, those of one name as one; what to look at next.
//
// JSON: members "command", "wall_ns", "thread_ns", "cpu_ns" and "off_cpu_ns" (as far as
// the kernel recorded it), "parts" (name, calls, base_ns), "functions" as in the view
// "flat", and "threads", "processes" or "all" as in the view "tree".
std::unique_ptr<View> make_summary_view(const ViewSettings& settings);

}  // namespace arctrace::reader
