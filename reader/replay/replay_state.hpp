// What the stacks of all threads share while a trace is replayed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/filter.hpp"
#include "reader/replay/kernel_functions.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/resolver.hpp"
#include "reader/replay/schedule_listener.hpp"
#include "reader/trace/finding_log.hpp"

namespace arctrace::reader {

// Of all replayed threads, shown or not.
struct ReplayTotals {
  uint64_t orphans = 0;  // exits that fit no frame
  uint64_t resyncs = 0;  // STACK records that changed the stack that was known
  // Frames, by what was unusual with them.
  uint64_t unwound = 0, exit_lost = 0, entry_lost = 0, entered_before = 0, inherited = 0,
           open = 0;
};

struct ReplayState {
  ReplayState(const Definitions& meanings, Symbolizer* symbolizer,
              const ReplayFilter& what, ReportClock which, ReplayListener* told,
              ScheduleListener* told_states, size_t max_findings)
      : definitions(meanings),
        resolver(meanings, symbolizer),
        kernel_functions(resolver.mutable_functions()),
        filter(what),
        matcher(filter, resolver.functions()),
        clock(which),
        has_dispatches(std::any_of(meanings.threads().begin(), meanings.threads().end(),
                                   [](const Thread& t) { return t.of_kernel(); })),
        listener(told),
        schedule(told_states),
        findings(max_findings) {}

  const Definitions& definitions;
  FunctionResolver resolver;
  KernelFunctions kernel_functions;
  const ReplayFilter filter;
  FunctionMatcher matcher;
  const ReportClock clock;
  const bool has_dispatches;  // the kernel told when threads had a CPU
  ReplayListener* listener;   // may be nullptr, and so may be this one
  ScheduleListener* schedule;
  CallTree tree;
  FindingLog findings;
  ReplayTotals totals;
};

}  // namespace arctrace::reader
