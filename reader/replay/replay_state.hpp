// What the stacks of all threads share while a trace is replayed.
#pragma once

#include <cstdint>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/filter.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/resolver.hpp"
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
              const ReplayFilter& what, ReplayListener* told, size_t max_findings)
      : definitions(meanings),
        resolver(meanings, symbolizer),
        filter(what),
        matcher(filter, resolver.functions()),
        listener(told),
        findings(max_findings) {}

  const Definitions& definitions;
  FunctionResolver resolver;
  const ReplayFilter filter;
  FunctionMatcher matcher;
  ReplayListener* listener;  // may be nullptr
  CallTree tree;
  FindingLog findings;
  ReplayTotals totals;
};

}  // namespace arctrace::reader
