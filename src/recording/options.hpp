// What a recording is asked to do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/recording/kernel_options.hpp"
#include "src/recording/patterns/call_filter.hpp"
#include "src/recording/patterns/record_filter.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

using shim::LibraryCalls;

// The trace file to write.
struct OutputFile {
  std::string path;
  // A FIFO or device is written into only if the user named it.
  bool is_named = false;
  // Whether the names of functions are stored in it at the end of a recording.
  bool has_symbols = true;
};

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
  FlightOptions flight;     // but its output
  std::vector<pid_t> pids;  // processes that run already; empty: `command` is run
  std::string session;      // records into this one; empty: into one of its own
};

}  // namespace arctrace::recording
