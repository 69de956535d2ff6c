// The table of views: their names, what each needs and can do, and how it is made.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// The kernel's records that a view is made of.
enum class KernelRecords : uint8_t {
  kNone,
  kDispatches,  // which thread ran when: recorded by BPF or by perf events
  kWakeUps,     // which thread woke which: recorded by BPF only
};

// Which columns of --columns a view has.
enum class TableColumns : uint8_t {
  kNone,
  kSums,   // calls and sums of times
  kTimes,  // these, and the times of single calls
};

struct ViewType {
  const char* name;  // the value of --view
  const char* help;  // what it shows, to follow the name
  std::unique_ptr<View> (*make)(const ViewSettings&);
  // Of a view that is made of call trees (GroupView): its grouping if none is asked for.
  // Other views know no grouping and no least share.
  std::optional<Grouping> grouping = std::nullopt;
  // What its rows can be sorted by, first what they are if nothing is asked for. Empty:
  // they are in order of time.
  std::span<const SortKey> sort_keys = {};
  bool can_be_corrected = false;  // what recording cost can be taken off its times
  bool has_clock = true;          // its times can be those on one of the report's clocks
  KernelRecords needs = KernelRecords::kNone;
  bool writes_while_reading = false;
  bool shows_events = false;  // --where says which
  TableColumns columns = TableColumns::kNone;
  // -F does not filter calls, but names the functions that it is about.
  bool is_about_functions = false;
  // --of names the functions that it is about, if it is about any.
  bool can_be_of_functions = false;
  // Its text says at the rows of functions which are not complete.
  bool marks_left_out = false;
  // Its text has what it needs of the facts and sums of the trace.
  bool is_complete = false;
  uint64_t limit = UINT64_MAX;  // rows if -n does not say how many
};

// All views; the first one is the default.
std::span<const ViewType> view_types();

// The view of this name, or null.
const ViewType* find_view_type(std::string_view name);

}  // namespace arctrace::reader
