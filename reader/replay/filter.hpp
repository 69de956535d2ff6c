// Which calls a report shows. What is not shown leaves its time to the nearest shown
// frame around it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

// A demangled C++ name without its parameter list: "f(int)" is "f".
std::string_view without_parameters(std::string_view name);

// '*' stands for any characters, '?' for one; all others for themselves. Linear in
// pattern times text.
bool glob_match(std::string_view pattern, std::string_view text);

struct ReplayFilter {
  // Globs of function names, with or without their parameters. With `only`: the functions
  // that match, and what they call. `except`: without the functions that match, and what
  // they call.
  std::vector<std::string> only, except;
  uint32_t max_depth = UINT32_MAX;  // shown frames on top of each other
  // Time outside [from_ns, until_ns) is not counted; calls are that overlap it.
  int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
  uint64_t min_duration_ns = 0;  // calls that ended and were shorter are not shown

  bool has_range() const { return from_ns != INT64_MIN || until_ns != INT64_MAX; }
  bool has_functions() const { return !only.empty() || !except.empty(); }
};

// Remembers which functions match.
class FunctionMatcher {
 public:
  FunctionMatcher(const ReplayFilter& filter, const Functions& functions)
      : filter_(filter), functions_(functions) {}

  struct Verdict {
    bool only;    // matches one of filter.only
    bool except;  // matches one of filter.except
  };
  Verdict match(FunctionId function);

 private:
  enum class Known : uint8_t { kNothing, kNeither, kOnly, kExcept, kBoth };

  const ReplayFilter& filter_;
  const Functions& functions_;
  std::vector<Known> known_;  // by FunctionId
};

}  // namespace arctrace::reader
