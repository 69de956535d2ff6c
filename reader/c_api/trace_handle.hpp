// The trace behind the C interface's handle.
#pragma once

#include <arctrace/reader.h>

#include <utility>

#include "reader/c_api/trace_facts.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

struct arctrace_reader_trace {
  arctrace_reader_trace(arctrace::reader::Trace opened,
                        arctrace::reader::SymbolOptions symbol_options)
      : trace(std::move(opened)), symbols(std::move(symbol_options)), facts(trace) {}

  arctrace::reader::Trace trace;  // used by the cursor's thread while there is one
  const arctrace::reader::SymbolOptions symbols;
  arctrace::reader::TraceFacts facts;
  bool is_busy = false;  // it has a cursor
};
