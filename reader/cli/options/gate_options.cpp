#include "reader/cli/options/gate_options.hpp"

#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <vector>

namespace arctrace::cli {
namespace {

const std::map<std::string, uint32_t> kClasses = {{"functions", ARCTRACE_GATE_FUNCTIONS},
                                                  {"events", ARCTRACE_GATE_EVENTS},
                                                  {"marks", ARCTRACE_GATE_MARKS},
                                                  {"kernel", ARCTRACE_GATE_KERNEL},
                                                  {"all", ARCTRACE_GATE_ALL}};
// By the names that options of `record` have.
const std::map<std::string, uint32_t> kKernelEvents = {
    {"syscalls", ARCTRACE_KERNEL_SYSCALLS}, {"page-faults", ARCTRACE_KERNEL_FAULTS},
    {"signals", ARCTRACE_KERNEL_SIGNALS},   {"contention", ARCTRACE_KERNEL_CONTENTION},
    {"block-io", ARCTRACE_KERNEL_BLOCK_IO}, {"irq", ARCTRACE_KERNEL_INTERRUPTS}};

// The option, with a value for each of these names; store(name) is called for each.
template <class Store>
CLI::Option* add_names_option(CLI::App& app, const std::string& flag,
                              const std::map<std::string, uint32_t>& names, Store store,
                              const std::string& help) {
  return app
      .add_option_function<std::vector<std::string>>(
          flag,
          [store](const std::vector<std::string>& given) {
            for (const std::string& name : given) store(name);
          },
          help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names))
      ->type_name("CLASS");
}

}  // namespace

CLI::Option* add_classes_option(CLI::App& app, const std::string& flag, uint32_t& bits,
                                const std::string& help) {
  return add_names_option(
      app, flag, kClasses,
      [&bits](const std::string& name) { bits |= kClasses.at(name); }, help);
}

CLI::Option* add_classes_and_events_option(CLI::App& app, const std::string& flag,
                                           uint32_t& bits, uint32_t& events,
                                           const std::string& help) {
  static const std::map<std::string, uint32_t> kAll = [] {
    std::map<std::string, uint32_t> all = kClasses;
    all.insert(kKernelEvents.begin(), kKernelEvents.end());
    return all;
  }();
  return add_names_option(
      app, flag, kAll,
      [&bits, &events](const std::string& name) {
        const auto event = kKernelEvents.find(name);
        if (event != kKernelEvents.end()) {
          events |= event->second;
        } else {
          bits |= kClasses.at(name);
        }
      },
      help);
}

}  // namespace arctrace::cli
