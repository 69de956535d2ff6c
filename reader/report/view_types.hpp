// The table of views: their names, what each needs and can do, and how it is made.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// The kernel's records from which a view is made.
enum class KernelRecords : uint8_t {
  kNone,
  kDispatches,  // which thread ran when: recorded by BPF or by perf events
  kWakeUps,     // which thread woke which: recorded by BPF only
};

// The columns of --columns that a view has.
enum class TableColumns : uint8_t {
  kNone,
  kSums,   // calls and sums of times
  kTimes,  // these, and the times of single calls
};

struct ViewType {
  const char* name;  // the value of --view
  const char* help;  // what it shows, to follow the name
  std::unique_ptr<View> (*make)(const ViewSettings&);
  // In a view of call trees (GroupView): its grouping if none is asked for. Other views
  // know no grouping and no least share.
  std::optional<Grouping> grouping = std::nullopt;
  // The keys by which its rows can be sorted, the default first. Empty: the rows are in
  // order of time.
  std::span<const SortKey> sort_keys = {};
  bool can_be_corrected = false;  // what recording cost can be taken off its times
  bool has_clock = true;          // its times can be those on one of the report's clocks
  bool needs_times = false;       // of single calls
  KernelRecords needs = KernelRecords::kNone;
  bool writes_while_reading = false;
  bool shows_events = false;  // --where chooses among them
  TableColumns columns = TableColumns::kNone;
  // -F does not filter calls, but names the functions that the view is about.
  bool is_about_functions = false;
  // --of names the functions that the view is about, if any.
  bool can_be_of_functions = false;
  // Its text marks the rows of functions that are not complete.
  bool marks_left_out = false;
  // Its text has all facts and sums of the trace that it needs.
  bool is_complete = false;
  uint64_t limit = UINT64_MAX;  // rows if -n does not say how many
};

// All views; the first one is the default.
std::span<const ViewType> view_types();

// The view of this name, or null.
const ViewType* find_view_type(std::string_view name);

}  // namespace arctrace::reader
