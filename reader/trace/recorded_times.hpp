// The times in which something was recorded: the filters that left out calls, the
// kernel's events that were switched on, and the times in which the kernel's records or
// whole files are missing.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace::reader {

// The entry of a filter that is not known any more (SPEC.md BUF-6).
inline constexpr std::string_view kUnknownFilter = "?";

// A stretch of time in which a filter applied, and its entries.
struct FilterStretch {
  int64_t from_ns, to_ns;  // INT64_MAX: to the end
  // "+GLOB" and "-GLOB" as the record has them, or kUnknownFilter alone; raw bytes.
  std::vector<std::string> entries;
};

// Returns the entries of a filter's text; if the text was cut, the last one is
// kUnknownFilter.
std::vector<std::string> filter_entries(std::string_view text);

// The filters that left out calls of functions while a trace was recorded: live ones
// (SPEC.md FLT-1), which apply to all processes, as ENABLED records tell them. The
// filters with which processes were started are in Definitions::call_filter().
class LiveFilters {
 public:
  // The most stretches that are stored. After so many changes, the filter of the rest of
  // the recording counts as not known.
  static constexpr size_t kMax = 48;

  // Notes that from `time_ns` on, ENABLED has this text of both filters. Times must not
  // decrease.
  void add(int64_t time_ns, std::string_view text);

  // The stretches in order of time, without overlaps.
  std::span<const FilterStretch> all() const { return filters_; }

 private:
  std::vector<FilterStretch> filters_;
};

// The times in which the kernel's events were recorded that can be switched on and off
// one by one, as ENABLED records tell it (enum arctrace_kernel_event).
class KernelEventTimes {
 public:
  struct Stretch {
    int64_t from_ns, to_ns;  // INT64_MAX: to the end
    uint32_t events;         // that are recorded; may be none
  };
  // The most stretches that are stored. After so many changes, no event counts as
  // recorded.
  static constexpr size_t kMax = 1000;

  // Notes that from `time_ns` on, ENABLED has this word. Times must not decrease.
  void add(int64_t time_ns, uint32_t recorded);

  // The stretches in order of time, from the first ENABLED on. While the kernel's records
  // as a whole are switched off, the stretch before goes on.
  std::span<const Stretch> all() const { return stretches_; }
  // The events that were recorded at some time.
  uint32_t ever() const { return ever_; }

 private:
  std::vector<Stretch> stretches_;
  uint32_t ever_ = 0;
};

// Returns the events of an ENABLED record's word.
uint32_t kernel_events_of(uint32_t recorded);

// The CPU of a thread that has none, or whose CPU is not known.
inline constexpr uint32_t kCpuNotKnown = UINT32_MAX;

// The times in which records of the kernel's are missing (SPEC.md READ-9): for each CPU,
// and for all of them. All gaps are known before the first record is replayed, because a
// state that is known before a gap ends with the gap's begin.
class KernelGaps {
 public:
  // Notes that records of `cpu` are missing in that time, or those of all CPUs
  // (kCpuNotKnown). Gaps may overlap, and come in any order.
  void add(int64_t from_ns, int64_t to_ns, uint32_t cpu);
  // To be called after the last add().
  void finish();

  // Returns the first time from `time_ns` on at which records of `cpu` are missing, or,
  // with kCpuNotKnown, those of any CPU; INT64_MAX: there is none. Takes logarithmic
  // time.
  int64_t next_ns(int64_t time_ns, uint32_t cpu) const;

  bool empty() const { return any_.empty(); }

 private:
  struct Stretch {
    int64_t from_ns, to_ns;
  };
  // Sorted, without overlaps once finish() was called.
  using Stretches = std::vector<Stretch>;
  static void join(Stretches& stretches);

  Stretches any_;                                    // of some CPU, or of all
  Stretches all_;                                    // of all CPUs
  absl::flat_hash_map<uint32_t, Stretches> by_cpu_;  // of the CPU; with those of all
};

// A time whose records, of all threads and CPUs, were in files of the recording that are
// not among those that are read.
struct MissingFiles {
  int64_t from_ns = 0, to_ns = 0;
  uint64_t records = 0;         // user records
  uint64_t kernel_records = 0;  // the kernel's
  // Whether the recorder removed the files. Otherwise somebody else did, or they are read
  // apart from these.
  bool is_removed = false;

  uint64_t all_records() const { return records + kernel_records; }
};

// The times of all files that are missing for one reason. They may overlap.
class MissingTimes {
 public:
  MissingTimes(std::span<const MissingFiles> files, bool are_removed);

  // Whether one of the times overlaps [from_ns, to_ns], in logarithmic time.
  bool meet(int64_t from_ns, int64_t to_ns) const;

 private:
  // The begin of each time, in order, and the latest end up to it.
  std::vector<std::pair<int64_t, int64_t>> times_;
};

}  // namespace arctrace::reader
