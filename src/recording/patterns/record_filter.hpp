// Which events of the API, and which processes' and threads' records, are recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arctrace::recording {

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

}  // namespace arctrace::recording
