// The options that every view of a report understands.
#pragma once

#include <cstdint>

#include "reader/analysis/tree_walk.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::reader {

struct ViewOptions {
  SortKey sort = SortKey::kCum;
  uint64_t limit = UINT64_MAX;  // rows of a table
  double min_percent = 0;  // rows with less of cum, and what is below them, are hidden
  bool lines = false;      // file:line of functions
  TextStyle style;
};

}  // namespace arctrace::reader
