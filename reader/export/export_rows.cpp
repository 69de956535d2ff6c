#include "reader/export/export_rows.hpp"

#include <algorithm>

#include "reader/export/export_names.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::reader {
namespace {

// The name in rows about a filter that left functions out altogether.
constexpr std::string_view kFunctionsWithoutCalls = "[functions without calls]";
constexpr std::string_view kFilteredEvents = "[events]";

}  // namespace

void RowsExport::begin(Replay& replay, const WriteText& write) {
  whole_names_.emplace(replay.functions()).set_full(true);
  names_.emplace(replay.definitions(), *whole_names_);
  replay_ = &replay;
  functions_ = &replay.functions();
  has_dispatches_ = replay.has_dispatches();
  write_head(write);
}

void RowsExport::call(const WholeCall& call) {
  const FrameInfo& frame = call.frame;
  ExportRow row;
  row.type = is_call(frame.flags) ? "call" : "frame";
  row.thread = frame.thread;
  row.start_ns = frame.start_ns;
  if (call.has_ended)
    row.duration_ns = static_cast<uint64_t>(frame.stop_ns - frame.start_ns);
  row.self_ns = frame.self_ns;
  if (has_dispatches_) {
    row.off_cpu_ns = frame.cpu.off_ns;
    row.not_known_ns = frame.cpu.unknown_ns;
  }
  row.depth = frame.depth;
  if (frame.coroutine != 0) row.coroutine = frame.coroutine;
  const std::string module = safe_name((*functions_)[frame.function].module);
  row.name = names_->function(frame.function);
  row.module = module;
  row.args = call.args;
  row.retval = call.retval;
  row.flags = frame.flags;
  write_row(row);
}

void RowsExport::point(const PointInfo& point) {
  ExportRow row;
  std::string title;
  std::string fields;
  row.thread = point.thread;
  row.start_ns = point.time_ns;
  switch (point.kind) {
    case PointInfo::Kind::kRecord:
      row.type = point_type_text(point.record->type);
      fields = describe_point(*point.record, title);
      if (title.empty()) title = record_type_text(point.record->type);
      break;
    case PointInfo::Kind::kOrphan:
      row.type = kOrphanExitName;
      break;
    case PointInfo::Kind::kResync:
      row.type = kContradictionName;
      break;
  }
  const std::string name = safe_name(title);
  row.name = name;
  row.fields = fields;
  write_row(row);
}

void RowsExport::state_ended(const StateInfo& state) {
  ExportRow row;
  row.type = "state";
  row.thread = state.thread;
  row.start_ns = state.start_ns;
  row.duration_ns = static_cast<uint64_t>(state.stop_ns - state.start_ns);
  row.name = run_state_text(state);
  write_row(row);
}

void RowsExport::gap(const Gap& gap) {
  ExportRow row;
  row.type = "gap";
  row.thread = gap.thread;
  row.start_ns = gap.from_known ? gap.from_ns : gap.to_ns;
  if (gap.from_known) row.duration_ns = static_cast<uint64_t>(gap.to_ns - gap.from_ns);
  const std::string name = gap_reason_text(gap);
  const std::string fields = gap_fields(gap);
  row.name = name;
  row.fields = fields;
  write_row(row);
}

void RowsExport::left_out(FunctionId function, const LeftOut& what) {
  ExportRow row;
  row.type = "left-out";
  row.start_ns = what.from_ns.value_or(begin_ns_);
  if (what.to_ns.has_value()) {
    row.duration_ns =
        static_cast<uint64_t>(*what.to_ns) - static_cast<uint64_t>(row.start_ns);
  }
  const std::string module = safe_name((*functions_)[function].module);
  const std::string fields = left_out_fields(safe_name(what.by), std::nullopt);
  row.name =
      function == kRootFunction ? kFunctionsWithoutCalls : names_->function(function);
  row.module = module;
  row.fields = fields;
  write_row(row);
}

void RowsExport::left_out_events(const std::string& by, uint64_t count) {
  ExportRow row;
  row.type = "left-out";
  row.start_ns = begin_ns_;
  const std::string fields = left_out_fields(by, count);
  row.name = kFilteredEvents;
  row.fields = fields;
  write_row(row);
}

absl::Status RowsExport::finish() {
  finish_calls();
  for (const ThreadTree& thread : replay_->threads()) {
    begin_ns_ = std::min(begin_ns_, thread.start_ns);
  }
  if (replay_->threads().empty()) begin_ns_ = 0;
  RecordedStates(*replay_).for_each(
      [this](FunctionId function, const LeftOut& what) { left_out(function, what); });
  if (settings().filters_events()) {
    const EventFilter& events = *settings().events;
    left_out_events(safe_text(where_text(events)), events.left_out());
  }
  // The count includes instants and counters.
  if (const uint64_t count = settings().filtered_out(); count != 0) {
    left_out_events("the recording's filter", count);
  }
  write_rest();
  return absl::OkStatus();
}

}  // namespace arctrace::reader
