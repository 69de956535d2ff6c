// What `arctrace record` is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/cli/options/call_filter_options.hpp"
#include "reader/cli/options/kernel_options.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_filter_options.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::cli {

using shim::LibraryCalls;

struct RecordOptions {
  BufferOptions buffer;
  OutputFile output;
  std::vector<std::string> command;  // program and arguments
  bool wait_for_all = false;         // until no descendant is left
  uint64_t duration_ns = 0;          // of the recording; 0: as long as the command
  LibraryCalls library_calls = LibraryCalls::kProgram;
  CallFilterOptions filter;  // without a problem
  RecordFilterOptions record_filter;
  uint32_t off = 0;  // classes that are not recorded at first: enum arctrace_gate_bit
  KernelOptions kernel;
  FlightOptions flight;     // but its command line and output
  std::vector<pid_t> pids;  // processes that run already; empty: `command` is run
  std::string session;      // records into this one; empty: into one of its own
};

}  // namespace arctrace::cli
