// What the stacks of all threads share during a replay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/filter.hpp"
#include "reader/replay/fork_functions.hpp"
#include "reader/replay/hook_costs.hpp"
#include "reader/replay/kernel_functions.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/made_up_functions.hpp"
#include "reader/replay/resolver.hpp"
#include "reader/replay/schedule_listener.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/finding_log.hpp"

namespace arctrace::reader {

// Sums over all replayed threads, shown or not, in the filter's time range.
struct ReplayTotals {
  uint64_t orphans = 0;  // exits that fit no frame
  uint64_t resyncs = 0;  // STACK records that changed the known stack
  // Frames by what was unusual about them.
  uint64_t unwound = 0, exit_lost = 0, entry_lost = 0, entered_before = 0, inherited = 0,
           guessed = 0, open = 0;
};

// A time in which functions were switched off, or some threads' were not recorded.
struct OffStretch {
  int64_t from_ns;
  int64_t to_ns;  // INT64_MAX: it lasts
  // The record filter, of which the threads that it excludes have this stretch; empty:
  // all threads have it.
  std::string filter;
};

struct ReplayState {
  ReplayState(const Definitions& all_definitions, Symbolizer* symbolizer,
              const ReplayFilter& shown, ReportClock report_clock,
              ReplayListener* replay_listener, ScheduleListener* schedule_listener,
              size_t max_findings)
      : definitions(all_definitions),
        resolver(all_definitions, symbolizer),
        kernel_functions(resolver.mutable_functions()),
        made_up(resolver.mutable_functions()),
        fork_functions(resolver.functions()),
        filter(shown),
        matcher(filter, resolver.functions()),
        clock(report_clock),
        has_dispatches(all_definitions.has_dispatches()),
        listener(replay_listener),
        schedule(schedule_listener),
        findings(max_findings) {}

  const Definitions& definitions;
  FunctionResolver resolver;
  KernelFunctions kernel_functions;
  MadeUpFunctions made_up;
  ForkFunctions fork_functions;
  const ReplayFilter filter;
  FunctionMatcher matcher;
  const ReportClock clock;
  bool has_dispatches;         // the kernel's records say when threads had a CPU
  ReplayListener* listener;    // or nullptr
  ScheduleListener* schedule;  // or nullptr
  CallTree tree;
  HookCosts costs{{}};
  bool is_corrected = false;  // the costs are taken off all times
  FindingLog findings;
  ReplayTotals totals;
  ReplayTotals outside;  // what the totals are not of: times outside the filter's range
  std::vector<OffStretch> off;  // as far as records were applied, in order of time
  const ClockMap* ticks = nullptr;
  bool is_overwritten = false;  // what is missing between a thread's blocks gave way
};

}  // namespace arctrace::reader
