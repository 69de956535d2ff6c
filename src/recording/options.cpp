// The command's options for events of the kernel.
#include "src/recording/options.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <utility>

namespace arctrace::recording {

namespace {

constexpr std::pair<uint32_t, const char*> kEvents[] = {
    {ARCTRACE_KERNEL_INTERRUPTS, "--kernel=irq"},
    {ARCTRACE_KERNEL_SYSCALLS, "--syscalls"},
    {ARCTRACE_KERNEL_FAULTS, "--page-faults"},
    {ARCTRACE_KERNEL_SIGNALS, "--signals"},
    {ARCTRACE_KERNEL_CONTENTION, "--contention"},
    {ARCTRACE_KERNEL_BLOCK_IO, "--block-io"}};

}  // namespace

const char* event_option(uint32_t event) {
  for (const auto& [known, option] : kEvents) {
    if (known == event) return option;
  }
  return "";
}

std::string event_options(uint32_t events) {
  std::string options;
  for (const auto& [event, option] : kEvents) {
    if ((events & event) == 0) continue;
    absl::StrAppend(&options, options.empty() ? "" : ", ", option);
  }
  return options;
}

}  // namespace arctrace::recording
