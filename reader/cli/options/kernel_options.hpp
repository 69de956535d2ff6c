// The options by which the kernel's records are recorded too.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "src/recorder/kernel/kernel_writer.hpp"

namespace arctrace::cli {

// By what: kAuto and kRequire by BPF, else by perf, else without (said) or not at all.
enum class KernelRecording : uint8_t { kNo, kAuto, kRequire, kBpf, kPerf };

struct KernelOptions {
  KernelRecording use = KernelRecording::kNo;
  KernelEvents events;
};

void add_kernel_options(CLI::App& app, KernelOptions& options);

// The options by which these are asked for: "--syscalls, --signals"; empty for none.
std::string event_options(const KernelEvents& events);

}  // namespace arctrace::cli
