// Options of the records that the kernel writes.
#pragma once

#include <cstdint>
#include <string>

#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

// How they are recorded. kAuto: by BPF, else by perf events, else not, with a warning.
// kRequire: by BPF, else by perf events, else it is an error.
enum class KernelRecording : uint8_t { kNo, kAuto, kRequire, kBpf, kPerf };

struct KernelOptions {
  KernelRecording use = KernelRecording::kNo;
  uint32_t events = 0;  // enum arctrace_kernel_event
};

void add_kernel_options(CLI::App& app, KernelOptions& options);

// The options that ask for these events (enum arctrace_kernel_event): "--syscalls,
// --signals"; empty for none.
std::string event_options(uint32_t events);

}  // namespace arctrace::cli
