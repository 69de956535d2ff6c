// A stretch of time of a trace.
#pragma once

#include <cstdint>

namespace arctrace::reader {

// [from_ns, until_ns), in nanoseconds since the session's start.
struct TimeRange {
  int64_t from_ns = INT64_MIN;
  int64_t until_ns = INT64_MAX;  // exclusive

  bool is_all() const { return from_ns == INT64_MIN && until_ns == INT64_MAX; }
  bool contains(int64_t time_ns) const {
    return time_ns >= from_ns && time_ns < until_ns;
  }
};

}  // namespace arctrace::reader
