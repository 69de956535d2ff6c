// The options of a recording.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/recording/patterns/filters.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

// How the kernel's records are recorded. kAuto: by BPF, else by perf events, else not,
// with a warning. kRequire: by BPF, else by perf events, else it is an error.
enum class KernelRecording : uint8_t { kNo, kAuto, kRequire, kBpf, kPerf };

struct KernelOptions {
  KernelRecording use = KernelRecording::kNo;
  uint32_t events = 0;  // enum arctrace_kernel_event
};

// The option of the command that asks for this event (enum arctrace_kernel_event):
// "--syscalls".
const char* event_option(uint32_t event);

// The options that ask for these events: "--syscalls, --signals"; empty for none.
std::string event_options(uint32_t events);

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
  recorder::BufferOptions buffer;
  OutputFile output;
  std::vector<std::string> command;        // program and arguments
  bool wait_for_all = false;               // until no descendant is left
  uint64_t duration_ns = 0;                // of the recording; 0: as long as the command
  std::optional<uint32_t> clock_cpu = {};  // which stores the clock word all the time
  uint64_t keep_ns = 0;  // the buffer is to hold the records of the last time; 0: any
  LibraryCalls library_calls = LibraryCalls::kProgram;
  CallFilterOptions filter;  // without a problem
  RecordFilterOptions record_filter;
  uint32_t off = 0;  // classes that are not recorded at first: enum arctrace_gate_bit
  KernelOptions kernel;
  recorder::FlightOptions flight;  // except its output
  std::vector<pid_t> pids;         // processes that run already; empty: `command` is run
  std::string session;             // to record into; empty: one of its own
};

}  // namespace arctrace::recording
