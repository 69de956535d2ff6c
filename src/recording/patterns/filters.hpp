// The filter options of a recording: which functions are recorded, and which of their
// arguments, by the letters of uftrace; which events of the API; and which processes' and
// threads' records. Finds what is wrong with these options, and encodes them for the
// shim.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

// The options that say which events of the API, and which processes' and threads'
// records, are recorded.
struct RecordFilterOptions {
  std::vector<std::string> events, not_events;      // globs
  std::optional<uint32_t> level;                    // events up to this one
  std::vector<std::string> instants, not_instants;  // globs, of counters too
  std::vector<std::string> where;                   // conditions on fields of events
  std::vector<uint32_t> pids, tids;

  bool empty() const;
  // The text for the control page (SPEC.md FLT-2).
  std::string text() const;
};

// The options that say which functions are recorded, and which of their arguments, by the
// letters of uftrace.
struct CallFilterOptions {
  std::vector<std::string> filter, notrace, modules;  // patterns
  std::vector<std::string> entry_only;                // patterns
  std::vector<std::string> patch;                     // patterns
  std::vector<std::string> args, retvals;             // PATTERN@ARG,ARG or PATTERN
  std::vector<std::string> snapshot_when;             // conditions
  bool auto_args = false;
  std::optional<uint32_t> depth;
  std::string time;  // as given; empty: any
  std::optional<uint64_t> size;

  bool is_empty() const {
    return filter.empty() && notrace.empty() && modules.empty() && !depth &&
           time.empty() && !size && entry_only.empty() && patch.empty() && args.empty() &&
           retvals.empty() && snapshot_when.empty() && !auto_args;
  }

  // Whether functions are excluded: -F, -N, -L, -D, -t, -Z.
  bool excludes_functions() const {
    return !filter.empty() || !notrace.empty() || !modules.empty() || depth ||
           !time.empty() || size;
  }
};

// What is wrong with an option's value, and where.
struct SpecProblem {
  std::string option;  // such as "-F"
  std::string value;
  size_t offset;  // in the value, in bytes
  std::string what;

  // "-F "re:(": what", then the value with a caret under the offset.
  std::string text() const;
};
std::optional<SpecProblem> find_problem(const CallFilterOptions& options);

// Adds the options to those of the shim. REQUIRES: find_problem() finds none.
void encode(const CallFilterOptions& options, shim::OptionsEncoder& encoder);

// One of the options that take patterns of functions or modules.
struct PatternOption {
  const char* option;  // such as "-F"
  shim::Pattern::Kind kind;
  const std::vector<std::string>* patterns;  // as given
};
// The options, in the order in which the shim counts the patterns.
std::array<PatternOption, 8> pattern_options(const CallFilterOptions& options);

// The pattern that functions must match, without the arguments of PATTERN@ARGS, or the
// condition after it. REQUIRES: a condition is valid.
std::string pattern_of(const PatternOption& option, const std::string& text);

}  // namespace arctrace::recording
