// Which calls a report shows. The time of a call that is not shown counts for the nearest
// shown frame around it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/functions.hpp"
#include "reader/trace/time_range.hpp"

namespace arctrace::reader {

// Whether a function with this demangled name matches one of `globs` (src/base/glob.hpp),
// with its parameters or without.
bool matches_any(const std::vector<std::string>& globs, std::string_view name);

struct ReplayFilter {
  // Globs of function names, with or without their parameters. If there are any in
  // `only`, the functions that match one, and what they call, are shown; of these, the
  // functions that match one of `except`, and what they call, are not.
  std::vector<std::string> only, except;
  uint32_t max_depth = UINT32_MAX;  // shown frames within one another
  // Only time in [from_ns, until_ns) counts. Calls that overlap this range are shown.
  int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
  uint64_t min_duration_ns = 0;  // completed calls that were shorter are not shown

  bool has_range() const { return from_ns != INT64_MIN || until_ns != INT64_MAX; }
  // What has to be read of the trace. How long a call lasted in all decides whether it
  // reaches the least duration.
  TimeRange read_range() const {
    return min_duration_ns == 0 ? TimeRange{from_ns, until_ns} : TimeRange{};
  }
  bool has_functions() const { return !only.empty() || !except.empty(); }
  // Whether calls may be hidden, other than by their time.
  bool has_calls() const {
    return has_functions() || max_depth != UINT32_MAX || min_duration_ns != 0;
  }
};

// Matches each function against the filter's globs once, and keeps the verdict. Both
// arguments must outlive it.
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
