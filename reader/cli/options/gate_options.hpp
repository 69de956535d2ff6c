// Options that name classes of records.
#pragma once

#include <cstdint>
#include <string>

#include "reader/cli/options/cli11.hpp"

namespace arctrace::cli {

// Adds the option `flag` CLASS,...: sets `bits` of enum arctrace_gate_bit for functions,
// events, marks, kernel or all.
CLI::Option* add_classes_option(CLI::App& app, const std::string& flag, uint32_t& bits,
                                const std::string& help);
// The same, and sets bits of enum arctrace_kernel_event for syscalls, page-faults,
// signals, contention, block-io and irq.
CLI::Option* add_classes_and_events_option(CLI::App& app, const std::string& flag,
                                           uint32_t& bits, uint32_t& events,
                                           const std::string& help);

}  // namespace arctrace::cli
