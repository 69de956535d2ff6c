// What is asked for of the kernel's records.
#pragma once

#include <cstdint>
#include <string>

namespace arctrace::recording {

// How they are recorded. kAuto: by BPF, else by perf events, else not, with a warning.
// kRequire: by BPF, else by perf events, else it is an error.
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

}  // namespace arctrace::recording
