// The options that every view of a report understands.
#pragma once

#include <cstdint>
#include <vector>

#include "reader/analysis/tree_walk.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::reader {

// The columns of tables of sums (columns.hpp).
enum class Column : uint8_t {
  kCalls,
  kSelfPercent,
  kTotalPercent,
  kSelf,
  kTotal,
  kOnCpu,
  kOffCpu,
  kAvg,
  kMin,
  kP50,
  kP90,
  kP99,
  kP999,
  kMax,
};

struct ViewOptions {
  SortKey sort = SortKey::kTotal;
  uint64_t limit = UINT64_MAX;  // rows of a table
  double min_percent =
      0;               // rows with less of the total, and what is below them, are hidden
  bool lines = false;  // file:line of functions
  std::vector<Column> columns;  // of tables of sums; empty: the default ones
  TextStyle style;
};

}  // namespace arctrace::reader
