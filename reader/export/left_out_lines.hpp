// What a trace lacks, as lines for formats that have a place for remarks: what was left
// out on purpose, and how many records are missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/export/export_names.hpp"
#include "reader/export/exporter.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/summary.hpp"

namespace arctrace::reader {

struct LeftOutLine {
  int64_t from_ns;   // or the beginning of what was replayed
  std::string text;  // safe
};

// "calls of leaf left out: switched off from 12.0 ms on", a line for each function that
// is not complete and each filter without functions that have calls; the first ones, and
// how many there are more. `replay` is finished.
std::vector<LeftOutLine> left_out_lines(Replay& replay, ExportNames& names);

// The same for formats that have events: adds how many events --where left out, and how
// many the filter with which they were recorded.
std::vector<LeftOutLine> left_out_lines_with_events(Replay& replay, ExportNames& names,
                                                    const ExportSettings& settings);

// "records missing: 1,234 lost (full 1,234), those of a program before it was joined";
// empty: none are. For formats that do not show when. `summary`, which may be null, is
// complete.
std::string missing_line(const Summary* summary, const Definitions& definitions);

}  // namespace arctrace::reader
