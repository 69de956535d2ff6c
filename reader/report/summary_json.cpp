#include "reader/report/summary_json.hpp"

#include "reader/trace/format_names.hpp"

namespace arctrace::reader {

void write_summary_json(const Summary& summary, const Replay& replay, bool interrupted,
                        JsonWriter& json) {
  const ReplayTotals& totals = replay.totals();
  json.key("summary").begin_object();
  json.member("records", summary.records);
  json.member("lost", summary.lost);
  json.key("lost_by_cause").begin_object();
  for (uint32_t cause = 0; cause < summary.lost_by_cause.size(); ++cause) {
    const uint64_t count = summary.lost_by_cause[cause];
    if (count == 0 && cause > ARCTRACE_LOST_NO_SLOT) continue;  // no such cause yet
    json.member(loss_cause_text(cause), count);
  }
  json.end();
  json.member("overwritten", summary.overwritten);
  json.member("torn", summary.torn);
  json.member("unfinished", summary.unfinished);
  json.member("invalid", summary.invalid);
  json.member("orphans", totals.orphans);
  json.member("findings", summary.findings + replay.finding_count());
  json.member("processes", summary.processes);
  json.member("threads", summary.threads);
  json.member("duration_ns", summary.duration_ns);
  json.key("frames").begin_object();
  json.member("open", totals.open);
  json.member("unwound", totals.unwound);
  json.member("entered_before", totals.entered_before);
  json.member("inherited", totals.inherited);
  json.member("entry_lost", totals.entry_lost);
  json.member("exit_lost", totals.exit_lost);
  json.end();
  json.member("resyncs", totals.resyncs);
  if (interrupted) json.member("interrupted", true);
  json.end();
}

}  // namespace arctrace::reader
