// The head and the end of each report: facts of the session, sums over the whole trace,
// what is missing in it, and what to do if the program's own functions are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reader/render/gap_list.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// The file, the command, the machine: a line each.
std::string report_head_text(const Session& session);

// The title above a corrected report.
inline constexpr const char* kCorrectedTitle =
    "Times are corrected: what recording itself cost is taken off.";

struct ReportSummary {
  const Summary& trace;
  const Replay& replay;                             // finished
  const std::vector<std::string>& symbol_findings;  // modules without symbols
  const EventFilter& events;                        // that are shown
  bool interrupted = false;                         // the trace was not read to its end
  bool lines = false;                               // source lines were asked for
};

// Returns why functions have no source lines, and what to do: one sentence, for the
// modules that the symbolizer did not find as they were recorded. Empty: it found all
// that have files.
std::string missing_lines_text(const std::vector<std::string>& symbol_findings);

// Says that the trace was not read to its end.
std::string interrupted_text();

// Lines with the sums, the marks of frames, and the first few symbol findings.
std::string report_end_text(const ReportSummary& summary);

// Writes members "summary" and "symbol_findings" of the object that is open. The former
// has records, lost, lost_by_cause, torn, orphans, processes, threads, duration_ns and
// more; with --where also events_left_out and where. The replay's counts (orphans,
// frames, resyncs) are of the threads that were replayed.
void write_report_end_json(const ReportSummary& summary, JsonWriter& json);

// Returns what to do if a recording has none of the program's own functions: "functions
// of server itself are not recorded: record it with -P ." It is about the program that
// worked most, not about a shell that waited for it. Empty if one was recorded, or may be
// among the missing records. `replay` is finished; null arguments are not known.
// `width`: the columns, 0 for any number.
std::string own_functions_hint(const Replay& replay, const Session* session,
                               const Summary* summary, const EnabledList* enabled,
                               size_t width);

}  // namespace arctrace::reader
