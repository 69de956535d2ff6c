// Options that choose which functions are recorded: the letters of uftrace.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/cli/options/session_functions.hpp"
#include "src/shim_protocol/options_encoder.hpp"

namespace arctrace::cli {

struct CallFilterOptions {
  std::vector<std::string> chosen, left_out, modules;  // patterns
  std::vector<std::string> arguments, results;         // PATTERN@VALUE,VALUE or PATTERN
  bool auto_values = false;
  std::optional<uint32_t> depth;
  std::string time;  // as given; empty: any
  std::optional<uint64_t> size;

  bool is_empty() const {
    return chosen.empty() && left_out.empty() && modules.empty() && !depth &&
           time.empty() && !size && arguments.empty() && results.empty() && !auto_values;
  }
};

void add_call_filter_options(CLI::App& app, CallFilterOptions& options);

// What is wrong with an option's value, and where.
struct SpecProblem {
  std::string option;  // such as "-F"
  std::string value;
  size_t place;  // byte of the value
  std::string what;

  // "-F "re:(": what", then the value with a caret under the place.
  std::string text() const;
};
std::optional<SpecProblem> find_problem(const CallFilterOptions& options);

// Adds them to what the shim is asked to do. REQUIRES: no problem.
void encode(const CallFilterOptions& options, shim::OptionsEncoder& encoder);

// The patterns, one bit each in the order of the control page's word, that some function
// of these matches.
uint64_t matched_patterns(const CallFilterOptions& options,
                          const SessionFunctions& session);

// A line for each pattern that no function matched; `matched`: the control page's word.
// Names that are near are looked for in the program `command`.
std::vector<std::string> unmatched_patterns(const CallFilterOptions& options,
                                            uint64_t matched, const std::string& command);

}  // namespace arctrace::cli
