#include "reader/report/view_types.hpp"

#include <algorithm>

#include "reader/report/critical_path_view.hpp"
#include "reader/report/locks_view.hpp"
#include "reader/report/views.hpp"

namespace arctrace::reader {
namespace {

constexpr SortKey kSums[] = {SortKey::kTotal, SortKey::kSelf, SortKey::kCalls,
                             SortKey::kName, SortKey::kEntry};
constexpr SortKey kCalls[] = {SortKey::kEntry, SortKey::kTotal, SortKey::kSelf,
                              SortKey::kName};
constexpr SortKey kSlowness[] = {SortKey::kTotal, SortKey::kSelf};
constexpr SortKey kLockSums[] = {SortKey::kTotal, SortKey::kSelf, SortKey::kCalls};
constexpr SortKey kErrorCounts[] = {SortKey::kCalls, SortKey::kTotal, SortKey::kName};
constexpr SortKey kStates[] = {SortKey::kEntry, SortKey::kTotal};
constexpr SortKey kLongest[] = {SortKey::kTotal};
constexpr SortKey kWakeUps[] = {SortKey::kTotal, SortKey::kCalls};

constexpr ViewType kViewTypes[] = {
    {.name = "summary",
     .help = "on one screen: how it ended, what was lost, what the time was spent on",
     .make = make_summary_view,
     .grouping = Grouping::kThread,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .is_complete = true},
    {.name = "tree",
     .help = "call trees, one for each thread",
     .make = make_tree_view,
     .grouping = Grouping::kThread,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .columns = TableColumns::kSums,
     .marks_left_out = true},
    {.name = "flat",
     .help = "a line for each function",
     .make = make_flat_view,
     .grouping = Grouping::kAll,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .columns = TableColumns::kTimes,
     .marks_left_out = true},
    {.name = "arcs",
     .help = "each function with its callers and callees",
     .make = make_arcs_view,
     .grouping = Grouping::kAll,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .columns = TableColumns::kSums,
     .marks_left_out = true},
    {.name = "kinds",
     .help = "time in library functions by what they do: locks, I/O, allocation ...",
     .make = make_kinds_view,
     .grouping = Grouping::kAll,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .columns = TableColumns::kSums,
     .marks_left_out = true},
    {.name = "flow",
     .help = "each entry, exit and event in order of time",
     .make = make_flow_view,
     .has_clock = false,
     .writes_while_reading = true,
     .shows_events = true},
    {.name = "invocations",
     .help = "a row for each call",
     .make = make_invocations_view,
     .sort_keys = kCalls},
    {.name = "histogram",
     .help = "how the times of calls of -F are distributed",
     .make = make_histogram_view,
     .grouping = Grouping::kAll,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .needs_times = true,
     .is_about_functions = true,
     .marks_left_out = true},
    {.name = "slowest",
     .help = "the slowest calls of -F, with their arguments",
     .make = make_slowest_view,
     .sort_keys = kSlowness,
     .needs_times = true,
     .is_about_functions = true,
     .limit = 10},
    {.name = "graph",
     .help = "the paths to -F, and what it calls; also: arctrace graph",
     .make = make_graph_view,
     .grouping = Grouping::kAll,
     .sort_keys = kSums,
     .can_be_corrected = true,
     .columns = TableColumns::kSums,
     .is_about_functions = true,
     .marks_left_out = true},
    {.name = "errors",
     .help = "which calls failed, with which errno: of system calls, and of -a and -R",
     .make = make_errors_view,
     .sort_keys = kErrorCounts,
     .has_clock = false},
    {.name = "locks",
     .help = "who waited for which lock, and who had it meanwhile",
     .make = make_locks_view,
     .sort_keys = kLockSums,
     .has_clock = false},
    {.name = "critical-path",
     .help = "what the time from begin to end depended on, from thread to thread",
     .make = make_critical_path_view,
     .sort_keys = kLongest,
     .has_clock = false,
     .needs = KernelRecords::kWakeUps,
     .can_be_of_functions = true},
    {.name = "processes",
     .help =
         "the tree of commands: how each ended, wall and CPU time; waits for a CPU, disk",
     .make = make_processes_view,
     .sort_keys = kLongest,
     .has_clock = false},
    {.name = "log-rt",
     .help = "the trees in the columns of JPROF, for programs to read",
     .make = make_log_rt_view,
     .grouping = Grouping::kThread,
     .sort_keys = kSums},
    {.name = "threads",
     .help = "when each thread ran, waited for a CPU, was blocked",
     .make = make_threads_view,
     .sort_keys = kStates,
     .has_clock = false,
     .needs = KernelRecords::kDispatches},
    {.name = "wakers",
     .help = "which thread woke which, and in which functions they were",
     .make = make_wakers_view,
     .sort_keys = kWakeUps,
     .has_clock = false,
     .needs = KernelRecords::kWakeUps},
};

}  // namespace

std::span<const ViewType> view_types() { return kViewTypes; }

const ViewType* find_view_type(std::string_view name) {
  const auto types = view_types();
  const auto found = std::find_if(types.begin(), types.end(), [&](const ViewType& type) {
    return name == type.name;
  });
  return found == types.end() ? nullptr : &*found;
}

}  // namespace arctrace::reader
