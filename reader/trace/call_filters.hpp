// The filters that left out calls of functions while a trace was recorded: live ones
// (SPEC.md FLT-1), which hold for all processes, as ENABLED records tell them. Those with
// which processes were started are theirs (Definitions::call_filter()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::reader {

// The entry of a filter that is not known any more (SPEC.md BUF-6).
inline constexpr std::string_view kUnknownFilter = "?";

// When a filter held, and what it said.
struct FilterStretch {
  int64_t from_ns, to_ns;  // INT64_MAX: to the end
  // "+GLOB" and "-GLOB" as the record has them, or kUnknownFilter alone; raw bytes.
  std::vector<std::string> entries;
};

// The entries of a filter's text; of one that was cut, the last is kUnknownFilter.
std::vector<std::string> filter_entries(std::string_view text);

class LiveFilters {
 public:
  // What is kept. After so many changes, the rest of the recording has a filter that is
  // not known.
  static constexpr size_t kMax = 48;

  // From `time_ns` on, ENABLED has this text of both filters. Times must not decrease.
  void add(int64_t time_ns, std::string_view text);

  // In order of time, without overlaps.
  std::span<const FilterStretch> all() const { return filters_; }

 private:
  std::vector<FilterStretch> filters_;
};

}  // namespace arctrace::reader
