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

}  // namespace arctrace::cli
