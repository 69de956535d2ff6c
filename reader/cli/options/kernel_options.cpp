#include "reader/cli/options/kernel_options.hpp"

#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <string>

namespace arctrace::cli {
namespace {

using recording::KernelOptions;
using recording::KernelRecording;

// The word for interrupts, which may stand beside one of the others.
constexpr const char* kInterrupts = "irq";

const std::map<std::string, KernelRecording> kRecordings = {
    {"auto", KernelRecording::kAuto},
    {"bpf", KernelRecording::kBpf},
    {"no", KernelRecording::kNo},
    {"perf", KernelRecording::kPerf},
    {"require", KernelRecording::kRequire}};

struct EventOption {
  uint32_t event;  // enum arctrace_kernel_event
  const char* what;
};

constexpr std::array kEvents = {
    EventOption{ARCTRACE_KERNEL_SYSCALLS,
                "record system calls, which slows those of all processes a little"},
    EventOption{ARCTRACE_KERNEL_FAULTS, "record page faults"},
    EventOption{ARCTRACE_KERNEL_SIGNALS, "record the delivery of signals"},
    EventOption{ARCTRACE_KERNEL_CONTENTION, "record waits for locks of the kernel"},
    EventOption{ARCTRACE_KERNEL_BLOCK_IO,
                "record requests to block devices, and their end"}};

// One of the words, "irq", or both with a comma between them.
void set_recording(const std::string& text, KernelOptions& options) {
  const std::string behind = std::string(",") + kInterrupts;
  std::string word = text;
  const bool has_interrupts = text == kInterrupts || text.ends_with(behind);
  options.events &= ~uint32_t{ARCTRACE_KERNEL_INTERRUPTS};
  if (has_interrupts) options.events |= ARCTRACE_KERNEL_INTERRUPTS;
  if (text == kInterrupts) {
    word.clear();
  } else if (has_interrupts && text != behind) {
    word.resize(text.size() - behind.size());
  }
  const auto use = kRecordings.find(word.empty() ? "auto" : word);
  if (use == kRecordings.end()) {
    throw CLI::ValidationError(
        "--kernel", "\"" + text + "\" is not auto, bpf, perf, require, no or irq");
  }
  options.use = use->second;
  if (!has_interrupts) return;
  if (options.use == KernelRecording::kNo || options.use == KernelRecording::kPerf) {
    throw CLI::ValidationError("--kernel",
                               "\"" + text + "\": interrupts are recorded by BPF alone");
  }
}

}  // namespace

void add_kernel_options(CLI::App& app, KernelOptions& options) {
  app.add_option_function<std::string>(
         "--kernel",
         [&options](const std::string& text) { set_recording(text, options); },
         "record dispatches, wake-ups, fork, exec and exit of the traced processes. "
         "bpf: by BPF, which needs privileges; perf: by perf events, without "
         "wake-ups; require: by either, or fail; auto: by either if possible; irq: "
         "as auto, and by BPF also the interrupts that come upon their threads, which "
         "bpf,irq and require,irq join with another one. Default: no; --kernel alone: "
         "auto")
      ->expected(0, 1)
      ->type_name("auto|bpf|perf|require|no|irq");
  for (const EventOption& event : kEvents) {
    app.add_flag_callback(
        recording::event_option(event.event),
        [&options, &event] {
          options.events |= event.event;
          if (options.use == KernelRecording::kNo) options.use = KernelRecording::kAuto;
        },
        std::string(event.what) + "; needs BPF");
  }
}

}  // namespace arctrace::cli
