// The sums of the page's time as JSON: what it was spent on, and by function.
#pragma once

#include <span>

#include "reader/streams/json_writer.hpp"
#include "reader/ui/model/page_json.hpp"

namespace arctrace::reader {

// Members of the object that is open:
//
// parts: objects with name, calls, self_ns, and the members of write_off_json().
// of_all_ns: the time of which these are parts.
// totals: arrays [function, calls, self_ns, total_ns, off_ns, ready_ns, timed, avg_ns,
// min_ns, p50_ns, p90_ns, p99_ns, max_ns, [the power of two of the first column,
// columns...]]; null where nothing is known. The numbers are those of `report --view=flat
// --per=all`, `off_ns` is of total_ns. `ids`: as for id_on_page().
// busy: of a server the same three, without the time in which it had no work and without
// threads that slept throughout, as `report` has them; else null.
// marks: arrays [function, text], the marks of the report's rows, such as [recording];
// marks_legend: lines that explain them.
// notes: arrays [function, text], of functions that are not complete (left_out.hpp);
// notes_legend: lines that explain them, and that tell what filters left out without a
// row.
// recording, serving: PageSummary.
void write_totals_json(const PageFacts& facts, std::span<const FunctionId> ids,
                       JsonWriter& json);

}  // namespace arctrace::reader
